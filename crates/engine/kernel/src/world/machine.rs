//! Files about the machine that say something else at every moment. A guest computes with what they say (how much
//! memory is free, how fast the clock runs), so two runs would differ: these show a machine at rest.

/// What a file of `/proc` says in a private world; `None` if it says the same at all times.
pub(super) fn at_rest(path: &[u8], text: &[u8]) -> Option<Vec<u8>> {
    let said = match path {
        b"/proc/uptime" => "86400.00 86400.00\n".to_string(),
        b"/proc/loadavg" => "0.00 0.00 0.00 1/1 1\n".to_string(),
        b"/proc/meminfo" => memory(&String::from_utf8_lossy(text)),
        b"/proc/stat" => processors(&String::from_utf8_lossy(text)),
        b"/proc/cpuinfo" => steady_clock(&String::from_utf8_lossy(text)),
        b"/proc/vmstat" | b"/proc/diskstats" | b"/proc/interrupts" | b"/proc/softirqs" => {
            String::new()
        }
        _ => return None,
    };
    Some(said.into_bytes())
}

/// The machine's sizes, half of which is free.
fn memory(text: &str) -> String {
    let size = |name: &str| -> u64 {
        let line = text.lines().find(|line| line.starts_with(name));
        let number = line.and_then(|line| line.split_whitespace().nth(1));
        number.and_then(|number| number.parse().ok()).unwrap_or(0)
    };
    let (total, swap) = (size("MemTotal:"), size("SwapTotal:"));
    let rows = [
        ("MemTotal:", total),
        ("MemFree:", total / 2),
        ("MemAvailable:", total / 2),
        ("Buffers:", 0),
        ("Cached:", 0),
        ("SwapCached:", 0),
        ("SwapTotal:", swap),
        ("SwapFree:", swap),
        ("Shmem:", 0),
    ];
    rows.iter()
        .map(|(name, size)| format!("{name:<15} {size:>8} kB\n"))
        .collect()
}

/// As many processors as there are, none of which has done anything.
fn processors(text: &str) -> String {
    text.lines()
        .filter(|line| line.starts_with("cpu"))
        .filter_map(|line| line.split_whitespace().next())
        .map(|name| format!("{name} 0 0 0 0 0 0 0 0 0 0\n"))
        .collect()
}

fn steady_clock(text: &str) -> String {
    text.lines()
        .map(|line| match line.split_once(':') {
            Some((name, _)) if name.trim() == "cpu MHz" => format!("{name}: 1000.000\n"),
            _ => format!("{line}\n"),
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn two_moments_look_the_same() {
        let at =
            |free: &str| format!("MemTotal:  4000 kB\nMemFree:  {free} kB\nSwapTotal: 10 kB\n");
        let said = |free| at_rest(b"/proc/meminfo", at(free).as_bytes());
        assert_eq!(said("17"), said("2999"));
        assert!(
            said("17")
                .unwrap()
                .starts_with(b"MemTotal:           4000 kB\n")
        );
        let stat = at_rest(b"/proc/stat", b"cpu  9 8 7\ncpu0 1 2 3\nintr 5\n").unwrap();
        assert_eq!(stat, b"cpu 0 0 0 0 0 0 0 0 0 0\ncpu0 0 0 0 0 0 0 0 0 0 0\n");
        let info = at_rest(b"/proc/cpuinfo", b"model\t: x\ncpu MHz\t\t: 2199.998\n").unwrap();
        assert_eq!(info, b"model\t: x\ncpu MHz\t\t: 1000.000\n");
        assert_eq!(at_rest(b"/proc/version", b"Linux"), None);
    }
}
