//! Pretty printing as snarkjs does it: one space a level, every element on its own line, an empty
//! array over two lines, no newline at the end.

use super::decimal;

/// Text under construction.
pub(super) struct Writer {
    text: String,
    depth: usize,
    /// Whether nothing stands before the next element.
    is_first: bool,
    /// Whether the next element is the value of a member.
    is_after_name: bool,
}

impl Writer {
    pub(super) fn new() -> Self {
        Self {
            text: String::new(),
            depth: 0,
            is_first: true,
            is_after_name: false,
        }
    }

    pub(super) fn finish(self) -> String {
        self.text
    }

    fn newline(&mut self) {
        self.text.push('\n');
        self.text.extend(std::iter::repeat_n(' ', self.depth));
    }

    /// Begins an element of the enclosing array or object.
    fn element(&mut self) {
        if self.depth > 0 && !self.is_after_name {
            if !self.is_first {
                self.text.push(',');
            }
            self.newline();
        }
        self.is_first = false;
        self.is_after_name = false;
    }

    fn nested(&mut self, open: char, close: char, content: impl FnOnce(&mut Self)) {
        self.text.push(open);
        self.depth += 1;
        self.is_first = true;
        content(self);
        self.depth -= 1;
        self.is_first = false;
        self.newline();
        self.text.push(close);
    }

    pub(super) fn array(&mut self, content: impl FnOnce(&mut Self)) {
        self.element();
        self.nested('[', ']', content);
    }

    pub(super) fn object(&mut self, content: impl FnOnce(&mut Object<'_>)) {
        self.element();
        self.nested('{', '}', |writer| content(&mut Object(writer)));
    }

    /// A string that needs no escapes.
    pub(super) fn string(&mut self, value: &str) {
        self.element();
        self.text.push('"');
        self.text.push_str(value);
        self.text.push('"');
    }

    /// An integer as a decimal string.
    pub(super) fn decimal<const N: usize>(&mut self, limbs: [u64; N]) {
        self.element();
        self.text.push('"');
        decimal::push(&mut self.text, limbs);
        self.text.push('"');
    }

    /// An integer without quotes.
    pub(super) fn integer(&mut self, value: usize) {
        self.element();
        self.text.push_str(&value.to_string());
    }
}

/// An object under construction: names before values.
pub(super) struct Object<'a>(&'a mut Writer);

impl Object<'_> {
    /// One member; `value` writes exactly one value, which begins on the name's line.
    pub(super) fn member(&mut self, name: &str, value: impl FnOnce(&mut Writer)) {
        self.0.string(name);
        self.0.text.push_str(": ");
        self.0.is_after_name = true;
        value(self.0);
    }
}
