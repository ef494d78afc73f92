//! Programs whose headers are damaged at random: planned within bounds, or refused; never a panic.

use std::fs;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::PermissionsExt;

use proptest::prelude::*;
use proptest::test_runner::TestRunner;
use tempfile::TempDir;
use verdict_loader::{Layout, Lookup, PAGE, Request, plan};

/// ELF header and program headers of any ordinary program.
const HEADERS: usize = 64 + 13 * 56;

#[test]
fn damaged_headers_are_planned_within_bounds_or_refused() {
    let folder = TempDir::new().unwrap();
    let path = folder.path().join("program");
    let sound = fs::read("/bin/true").unwrap();
    fs::write(&path, &sound).unwrap();
    fs::set_permissions(&path, fs::Permissions::from_mode(0o755)).unwrap();

    let layout = Layout {
        pie_base: 0x1000_0000,
        interp_base: 0x2000_0000,
        lowest: 0x1_0000,
        highest: 0x7fff_f000,
        reserved: vec![0x3000_0000..0x5000_0000, 0x6000_0000..0x7000_0000],
        stack_limit: 8 << 20,
    };
    let request = Request {
        program: path.as_os_str().as_bytes(),
        lookup: Lookup::Exact,
        argv: &[],
        env: &[],
    };
    // Whole fields as well as single bytes, and numbers at the edges: sums of these overflow.
    let value = prop_oneof![
        any::<u64>(),
        (0_u32..64).prop_map(|shift| 1 << shift),
        (0_u64..4096).prop_map(|low| u64::MAX - low),
        0_u64..0x2000,
    ];
    let change = (0..HEADERS / 8, value);
    let changes = proptest::collection::vec(change, 1..6);
    let mut runner = TestRunner::new(ProptestConfig {
        cases: 400,
        failure_persistence: None,
        ..ProptestConfig::default()
    });
    runner
        .run(&changes, |changes| {
            let mut bytes = sound.clone();
            for (field, value) in changes {
                // The first 24 bytes say what the file is; damage there is refused before anything else is read.
                let at = (field * 8).max(24);
                bytes[at..at + 8].copy_from_slice(&value.to_le_bytes());
            }
            fs::write(&path, &bytes).unwrap();
            let Ok(plan) = plan(&request, &layout) else {
                return Ok(());
            };
            for mapping in &plan.mappings {
                let end = mapping.guest_addr.checked_add(mapping.len).unwrap();
                prop_assert!(
                    mapping.guest_addr % PAGE == 0 && mapping.len % PAGE == 0 && mapping.len > 0
                );
                prop_assert!(mapping.guest_addr >= layout.lowest && end <= layout.highest);
                prop_assert!(
                    layout
                        .reserved
                        .iter()
                        .all(|r| end <= r.start || r.end <= mapping.guest_addr)
                );
                prop_assert!(
                    mapping
                        .zero_from
                        .is_none_or(|from| mapping.guest_addr < from && from < end)
                );
            }
            Ok(())
        })
        .unwrap();
}
