//! Who the guest is and what it may use: users, groups, limits.

use super::guest::GuestMemory;
use super::host;
use super::node::Meta;
use super::{Answer, Reply, done};

/// Kinds of limits.
pub(super) const LIMITS: usize = 16;

/// Who the guest is. Changing it changes nothing outside.
#[derive(Clone, Debug)]
pub(super) struct Identity {
    /// Real, effective, saved.
    users: [u32; 3],
    groups: [u32; 3],
    more_groups: Vec<u32>,
    /// Soft and hard, by resource.
    limits: Vec<(u64, u64)>,
}

impl Identity {
    pub(super) fn of_host() -> Self {
        let (users, groups, more_groups) = host::identity();
        Identity {
            users,
            groups,
            more_groups,
            limits: host::limits(),
        }
    }

    pub(super) fn effective_user(&self) -> u32 {
        self.users[1]
    }

    pub(super) fn effective_group(&self) -> u32 {
        self.groups[1]
    }

    /// Descriptor numbers end here.
    pub(super) fn descriptors_max(&self) -> u64 {
        self.limits[libc::RLIMIT_NOFILE as usize].0
    }

    /// Checks what `access` would be asked for.
    pub(super) fn check(&self, meta: &Meta, want: i32) -> Result<(), i32> {
        let may = if self.users[1] == 0 {
            // The superuser may all but execute what nobody can.
            let executable = meta.mode & 0o111 != 0 || meta.mode & libc::S_IFMT == libc::S_IFDIR;
            if executable { 7 } else { 6 }
        } else if meta.uid == self.users[1] {
            meta.mode >> 6 & 7
        } else if meta.gid == self.groups[1] || self.more_groups.contains(&meta.gid) {
            meta.mode >> 3 & 7
        } else {
            meta.mode & 7
        };
        if want as u32 & !may == 0 {
            Ok(())
        } else {
            Err(libc::EACCES)
        }
    }

    /// True if it may change permissions and times.
    pub(super) fn owns(&self, meta: &Meta) -> bool {
        self.users[1] == 0 || self.users[1] == meta.uid
    }

    pub(super) fn is_superuser(&self) -> bool {
        self.users[1] == 0
    }

    /// A call about users, groups or limits.
    pub(super) fn call(&mut self, number: i64, a: [u64; 6], memory: &mut dyn GuestMemory) -> Reply {
        match number {
            libc::SYS_getuid => done(i64::from(self.users[0])),
            libc::SYS_geteuid => done(i64::from(self.users[1])),
            libc::SYS_getgid => done(i64::from(self.groups[0])),
            libc::SYS_getegid => done(i64::from(self.groups[1])),
            libc::SYS_getresuid => write_three(self.users, a, memory),
            libc::SYS_getresgid => write_three(self.groups, a, memory),
            libc::SYS_setuid => self.set_all(a[0] as u32, true),
            libc::SYS_setgid => self.set_all(a[0] as u32, false),
            libc::SYS_setreuid => self.set_each([a[0], a[1], a[1]], true),
            libc::SYS_setregid => self.set_each([a[0], a[1], a[1]], false),
            libc::SYS_setresuid => self.set_each([a[0], a[1], a[2]], true),
            libc::SYS_setresgid => self.set_each([a[0], a[1], a[2]], false),
            libc::SYS_setfsuid => done(i64::from(self.users[1])),
            libc::SYS_setfsgid => done(i64::from(self.groups[1])),
            libc::SYS_getgroups => self.get_groups(a, memory),
            libc::SYS_setgroups => self.set_groups(a, memory),
            libc::SYS_getrlimit => self.get_limit(a[0], a[1], memory),
            libc::SYS_setrlimit => self.set_limit(a[0], a[1], memory),
            _ => Err(libc::ENOSYS),
        }
    }

    /// `prlimit64` on the guest itself.
    pub(super) fn limit(
        &mut self,
        resource: u64,
        new: u64,
        old: u64,
        memory: &mut dyn GuestMemory,
    ) -> Reply {
        if old != 0 {
            self.get_limit(resource, old, memory)?;
        }
        if new != 0 {
            self.set_limit(resource, new, memory)?;
        }
        done(0)
    }

    fn get_limit(&self, resource: u64, to: u64, memory: &mut dyn GuestMemory) -> Reply {
        let (soft, hard) = *self.limits.get(resource as usize).ok_or(libc::EINVAL)?;
        memory.write_u64(to, soft)?;
        memory.write_u64(to + 8, hard)?;
        done(0)
    }

    fn set_limit(&mut self, resource: u64, from: u64, memory: &dyn GuestMemory) -> Reply {
        let (soft, hard) = (memory.read_u64(from)?, memory.read_u64(from + 8)?);
        let superuser = self.is_superuser();
        let limit = self.limits.get_mut(resource as usize).ok_or(libc::EINVAL)?;
        if soft > hard {
            return Err(libc::EINVAL);
        }
        if hard > limit.1 && !superuser {
            return Err(libc::EPERM);
        }
        *limit = (soft, hard);
        done(0)
    }

    fn ids(&mut self, users: bool) -> &mut [u32; 3] {
        if users {
            &mut self.users
        } else {
            &mut self.groups
        }
    }

    fn set_all(&mut self, id: u32, users: bool) -> Reply {
        let superuser = self.is_superuser();
        let ids = self.ids(users);
        if superuser {
            *ids = [id; 3];
        } else if ids.contains(&id) {
            ids[1] = id;
        } else {
            return Err(libc::EPERM);
        }
        done(0)
    }

    fn set_each(&mut self, wanted: [u64; 3], users: bool) -> Reply {
        let superuser = self.is_superuser();
        let ids = self.ids(users);
        let mut new = *ids;
        for (id, wanted) in new.iter_mut().zip(wanted) {
            let wanted = wanted as u32;
            if wanted == u32::MAX {
                continue;
            }
            if !superuser && !ids.contains(&wanted) {
                return Err(libc::EPERM);
            }
            *id = wanted;
        }
        *ids = new;
        done(0)
    }

    fn get_groups(&self, a: [u64; 6], memory: &mut dyn GuestMemory) -> Reply {
        let count = self.more_groups.len() as u64;
        if a[0] != 0 {
            if a[0] < count {
                return Err(libc::EINVAL);
            }
            for (index, group) in self.more_groups.iter().enumerate() {
                memory.write_u32(a[1] + 4 * index as u64, *group)?;
            }
        }
        done(count as i64)
    }

    fn set_groups(&mut self, a: [u64; 6], memory: &dyn GuestMemory) -> Reply {
        if !self.is_superuser() {
            return Err(libc::EPERM);
        }
        if a[0] > 1 << 16 {
            return Err(libc::EINVAL);
        }
        let groups: Result<Vec<u32>, i32> = (0..a[0])
            .map(|index| memory.read_u32(a[1] + 4 * index))
            .collect();
        self.more_groups = groups?;
        done(0)
    }
}

fn write_three(ids: [u32; 3], a: [u64; 6], memory: &mut dyn GuestMemory) -> Reply {
    for (id, to) in ids.into_iter().zip(a) {
        memory.write_u32(to, id)?;
    }
    Ok(Answer::Return(0))
}
