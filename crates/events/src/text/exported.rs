//! What text exporters share: names that can be told apart when they are read again.

use ::std::rc::Rc;
use hashbrown::{HashMap, HashSet};

use crate::{Addr, Event, Names, SiteId, SyncId, ThreadId, WriteError};

/// What a format allows in a name; otherwise why not.
pub(crate) type NameRule = fn(&str) -> Result<(), &'static str>;

/// The names that have been written. Two threads (sites, locations, locks) of one name would become one
/// when the text is read, so that is refused.
pub(crate) struct ExportedNames {
    rule: NameRule,
    site_rule: NameRule,
    threads: Written,
    sites: Written,
    locations: Written,
    syncs: Written,
}

#[derive(Default)]
struct Written {
    by_id: HashMap<u64, Rc<str>>,
    taken: HashSet<Rc<str>>,
}

impl Written {
    fn name(
        &mut self,
        id: u64,
        rule: NameRule,
        name: impl FnOnce() -> String,
    ) -> Result<Rc<str>, String> {
        if let Some(name) = self.by_id.get(&id) {
            return Ok(name.clone());
        }
        let name: Rc<str> = name().into();
        rule(&name)
            .map_err(|reason| format!("{reason}, as in `{}`", super::shown(name.as_bytes())))?;
        if !self.taken.insert(name.clone()) {
            return Err(format!(
                "another of its kind is named `{}` too",
                super::shown(name.as_bytes())
            ));
        }
        self.by_id.insert(id, name.clone());
        Ok(name)
    }
}

impl ExportedNames {
    pub(crate) fn new(rule: NameRule, site_rule: NameRule) -> Self {
        Self {
            rule,
            site_rule,
            threads: Written::default(),
            sites: Written::default(),
            locations: Written::default(),
            syncs: Written::default(),
        }
    }

    pub(crate) fn thread(&mut self, id: ThreadId, names: &dyn Names) -> Result<Rc<str>, String> {
        self.threads
            .name(id.0.into(), self.rule, || names.thread(id))
    }

    pub(crate) fn site(&mut self, id: SiteId, names: &dyn Names) -> Result<Rc<str>, String> {
        self.sites
            .name(id.0.into(), self.site_rule, || names.site(id))
    }

    pub(crate) fn location(&mut self, addr: Addr, names: &dyn Names) -> Result<Rc<str>, String> {
        self.locations
            .name(addr.0, self.rule, || names.location(addr))
    }

    pub(crate) fn sync(&mut self, id: SyncId, names: &dyn Names) -> Result<Rc<str>, String> {
        self.syncs.name(id.0, self.rule, || names.sync(id))
    }
}

/// The error for an event that a format cannot hold.
pub(crate) fn inexpressible(
    format: &'static str,
    position: u64,
    event: &Event,
    names: &dyn Names,
    reason: impl Into<String>,
) -> WriteError {
    WriteError::Inexpressible {
        format,
        position,
        event: event.describe(names),
        reason: reason.into(),
    }
}

/// For one-line text: no line ends or other control characters.
pub(crate) fn no_control(name: &str) -> Result<(), &'static str> {
    match name.chars().any(char::is_control) {
        true => Err("its names cannot have control characters"),
        false => Ok(()),
    }
}
