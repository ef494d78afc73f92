//! As much Markdown as the checks need.

/// What stands between backticks, outside code blocks.
pub fn quoted(text: &str) -> Vec<&str> {
    let mut inside_block = false;
    let mut found = Vec::new();
    for line in text.lines() {
        if line.starts_with("```") {
            inside_block = !inside_block;
        } else if !inside_block {
            found.extend(line.split('`').skip(1).step_by(2));
        }
    }
    found
}

/// The text of the section with this heading, up to the next heading of the same level.
pub fn section<'a>(text: &'a str, heading: &str) -> &'a str {
    let start = text.find(&format!("\n{heading}\n"));
    let start = start.unwrap_or_else(|| panic!("no section `{heading}`")) + heading.len() + 2;
    let level = heading.split(' ').next().unwrap();
    let rest = &text[start..];
    &rest[..rest.find(&format!("\n{level} ")).unwrap_or(rest.len())]
}

/// What stands between the first backticks of each row of the section's tables.
pub fn first_column(section: &str) -> Vec<&str> {
    let rows = section.lines().filter(|line| line.starts_with("| `"));
    rows.map(|row| row.split('`').nth(1).unwrap()).collect()
}

/// The lines of `console` blocks that are typed, without the prompt.
pub fn typed_commands(text: &str) -> Vec<&str> {
    let mut inside_console = false;
    let mut found = Vec::new();
    for line in text.lines() {
        if line.starts_with("```") {
            inside_console = line == "```console";
        } else if let (true, Some(command)) = (inside_console, line.strip_prefix("$ ")) {
            found.push(command);
        }
    }
    found
}

#[test]
fn blocks_are_told_from_text() {
    let text = "\n# a\n`x` and `y/z`\n```console\n$ run `no`\nout\n```\n| `t` | `u` |\n# b\n`w`\n";
    assert_eq!(quoted(text), ["x", "y/z", "t", "u", "w"]);
    assert_eq!(quoted(section(text, "# a")), ["x", "y/z", "t", "u"]);
    assert_eq!(first_column(section(text, "# a")), ["t"]);
    assert_eq!(typed_commands(text), ["run `no`"]);
}
