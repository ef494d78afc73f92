//! Markup that cannot be broken by what it shows: text becomes [`Html`] by being escaped, and in no other way.

use crate::plain::one_line;

/// Well-formed markup.
#[derive(Clone, Default, Debug)]
pub(super) struct Html(String);

impl Html {
    /// Text, on one line.
    pub(super) fn text(text: &str) -> Self {
        Self(escaped(&one_line(text)))
    }

    /// Text whose line ends stay.
    pub(super) fn lines<'a>(lines: impl IntoIterator<Item = &'a str>) -> Self {
        let lines: Vec<String> = lines
            .into_iter()
            .map(|line| escaped(&one_line(line)))
            .collect();
        Self(lines.join("\n"))
    }

    /// Our own style sheet or script, as it is.
    pub(super) fn own(source: &'static str) -> Self {
        Self(source.to_owned())
    }

    pub(super) fn push(&mut self, more: Self) {
        self.0.push_str(&more.0);
    }

    pub(super) fn and(mut self, more: Self) -> Self {
        self.push(more);
        self
    }

    pub(super) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    pub(super) fn into_string(self) -> String {
        self.0
    }
}

impl FromIterator<Html> for Html {
    fn from_iter<I: IntoIterator<Item = Html>>(pieces: I) -> Self {
        let mut all = Self::default();
        pieces.into_iter().for_each(|piece| all.push(piece));
        all
    }
}

/// An element with attributes. Names are ours, values may be anybody's.
pub(super) fn element(
    name: &'static str,
    attributes: &[(&'static str, &str)],
    content: Html,
) -> Html {
    let attributes: String = attributes
        .iter()
        .map(|(name, value)| format!(" {name}=\"{}\"", escaped(&one_line(value))))
        .collect();
    Html(format!("<{name}{attributes}>{}</{name}>", content.0))
}

/// An element that has no content and no end.
pub(super) fn void(name: &'static str, attributes: &[(&'static str, &str)]) -> Html {
    let start = element(name, attributes, Html::default()).0;
    let end = format!("</{name}>");
    Html(
        start
            .strip_suffix(&end)
            .map_or_else(String::new, str::to_owned),
    )
}

/// An element with a class or several, and nothing else.
pub(super) fn of_class(name: &'static str, class: &'static str, content: Html) -> Html {
    element(name, &[("class", class)], content)
}

/// An element without attributes.
pub(super) fn plain(name: &'static str, content: Html) -> Html {
    element(name, &[], content)
}

fn escaped(text: &str) -> String {
    let mut escaped = String::with_capacity(text.len());
    for character in text.chars() {
        match character {
            '&' => escaped.push_str("&amp;"),
            '<' => escaped.push_str("&lt;"),
            '>' => escaped.push_str("&gt;"),
            '"' => escaped.push_str("&quot;"),
            '\'' => escaped.push_str("&#39;"),
            other => escaped.push(other),
        }
    }
    escaped
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nothing_that_is_shown_is_markup() {
        let shown = element(
            "a",
            &[("title", "\"><script>")],
            Html::text("</a>&amp;\n\u{1b}"),
        );
        assert_eq!(
            shown.into_string(),
            "<a title=\"&quot;&gt;&lt;script&gt;\">&lt;/a&gt;&amp;amp;\\n\\u{1b}</a>"
        );
    }
}
