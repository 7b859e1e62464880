//! What goes on, told line by line on standard error: standard output belongs to results.

/// Whether anybody wants to hear it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Progress {
    /// A person watches.
    Shown,
    /// A test or a program that only wants the result.
    Hidden,
}

impl Progress {
    /// Tells one line.
    pub fn line(self, text: impl std::fmt::Display) {
        if self == Self::Shown {
            eprintln!("{text}");
        }
    }
}
