//! Split debug information (`-gsplit-dwarf`): the binary has skeletons, the rest is in `.dwo` files or in one package
//! of them beside the binary (`program.dwp`).

use std::cell::OnceCell;
use std::ffi::OsStr;
use std::fs;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use gimli::{Dwarf, DwarfPackage, DwoId, LittleEndian, SectionId};
use object::{Object, ObjectSection};

use crate::module::Reader;

/// The files of one binary.
pub(crate) struct SplitFiles {
    binary: PathBuf,
    package: OnceCell<Option<DwarfPackage<Reader>>>,
}

/// What a skeleton says of the unit it stands for.
pub(crate) struct Wanted {
    pub(crate) id: DwoId,
    /// Where the compiler ran.
    pub(crate) folder: Option<Reader>,
    pub(crate) name: Option<Reader>,
}

impl SplitFiles {
    pub(crate) fn of(binary: &Path) -> Self {
        Self {
            binary: binary.to_owned(),
            package: OnceCell::new(),
        }
    }

    /// The sections of the unit. None where its file is not there or is of another build.
    pub(crate) fn find(
        &self,
        parent: &Dwarf<Reader>,
        wanted: &Wanted,
    ) -> Option<Arc<Dwarf<Reader>>> {
        self.in_package(parent, wanted)
            .or_else(|| self.in_file(parent, wanted))
            .map(Arc::new)
    }

    fn in_package(&self, parent: &Dwarf<Reader>, wanted: &Wanted) -> Option<Dwarf<Reader>> {
        let package = self.package.get_or_init(|| self.open_package()).as_ref()?;
        package.find_cu(wanted.id, parent).ok()?
    }

    fn open_package(&self) -> Option<DwarfPackage<Reader>> {
        let mut name = self.binary.as_os_str().to_owned();
        name.push(".dwp");
        let bytes = fs::read(PathBuf::from(name)).ok()?;
        let file = object::File::parse(&*bytes).ok()?;
        let empty = Reader::new(Arc::from(&[][..]), LittleEndian);
        DwarfPackage::load(|id| section(&file, id), empty).ok()
    }

    fn in_file(&self, parent: &Dwarf<Reader>, wanted: &Wanted) -> Option<Dwarf<Reader>> {
        let name = path(wanted.name.as_ref()?);
        let folder = wanted.folder.as_ref().map(path).unwrap_or_default();
        // Where the compiler wrote it; or beside the binary, where both have been moved.
        let beside = self.binary.parent()?.join(name.file_name()?);
        [folder.join(&name), beside].iter().find_map(|path| {
            let bytes = fs::read(path).ok()?;
            let file = object::File::parse(&*bytes).ok()?;
            let mut dwarf = Dwarf::load(|id| section(&file, id)).ok()?;
            dwarf.make_dwo(parent);
            let header = dwarf.units().next().ok()??;
            let same = dwarf.unit(header).ok()?.dwo_id == Some(wanted.id);
            same.then_some(dwarf)
        })
    }
}

fn path(text: &Reader) -> PathBuf {
    Path::new(OsStr::from_bytes(text)).to_owned()
}

fn section<'data>(file: &impl Object<'data>, id: SectionId) -> Result<Reader, gimli::Error> {
    let data = id
        .dwo_name()
        .and_then(|name| file.section_by_name(name))
        .and_then(|section| section.uncompressed_data().ok())
        .unwrap_or_default();
    Ok(Reader::new(Arc::from(&*data), LittleEndian))
}
