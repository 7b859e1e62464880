//! The rules of a flat schema for one cell.

use std::cmp::Ordering;
use std::sync::Arc;

use rowmill_schema::Pattern;
use serde_json::{Map, Value};

use super::plain_number::PlainNumber;
use crate::text::schema::coerce::Types;

/// Keywords that say something about a value and ask nothing of it.
pub(super) const ANNOTATIONS: [&str; 8] =
    ["$comment", "title", "description", "default", "examples", "deprecated", "readOnly", "writeOnly"];

/// A schema's rule for one cell.
#[derive(Debug)]
pub(super) struct CellRule {
    types: Types,
    options: Option<Options>,
    limits: Vec<Limit>,
    multiple_of: Option<PlainNumber>,
    min_chars: u64,
    max_chars: u64,
    pattern: Option<Arc<Pattern>>,
}

/// Compiles the patterns of a schema.
pub(in crate::text::schema) trait Patterns {
    /// The compiled pattern. `None` if it is not valid, or would take much memory.
    fn compile(&mut self, pattern: &str) -> Option<Arc<Pattern>>;
}

/// The answer to whether a cell is valid.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Answer {
    Valid,
    /// The cell is empty, and its property is left out of the row.
    LeftOut,
    /// The validator must tell.
    Unsure,
}

/// The values of `enum` or `const`. Numbers that are not plain integers are missing, so a cell with one is unsure.
#[derive(Debug, Default)]
struct Options {
    /// Sorted.
    texts: Vec<String>,
    /// Sorted.
    integers: Vec<i64>,
    booleans: [bool; 2],
}

#[derive(Clone, Copy, Debug)]
enum Limit {
    AtLeast(PlainNumber),
    Above(PlainNumber),
    AtMost(PlainNumber),
    Below(PlainNumber),
}

impl CellRule {
    /// The rule of a property. `None` if the schema of the property has anything that this module does not know.
    pub(super) fn of(property: &Value, patterns: &mut dyn Patterns) -> Option<Self> {
        let no_keywords = Map::new();
        let keywords = match property {
            Value::Bool(true) => &no_keywords,
            property => property.as_object()?,
        };
        let types = Types::declared_by(property);
        let others = Types::NULL.or(Types::BOOLEAN).or(Types::NUMBER);
        // A cell that may be a string or something else is what it is written like. That takes more than is done here.
        let is_known = match types {
            Types::ANY | Types::STRING => true,
            Types::NONE => false,
            types => types == Types::STRING.or(Types::NULL) || types.and(others) == types,
        };
        if !is_known {
            return None;
        }
        let mut rule = Self {
            types,
            options: None,
            limits: Vec::new(),
            multiple_of: None,
            min_chars: 0,
            max_chars: u64::MAX,
            pattern: None,
        };
        for (keyword, value) in keywords {
            let number = || PlainNumber::parse(&value.as_number()?.to_string());
            match keyword.as_str() {
                "type" | "format" => {}
                "minimum" => rule.limits.push(Limit::AtLeast(number()?)),
                "exclusiveMinimum" => rule.limits.push(Limit::Above(number()?)),
                "maximum" => rule.limits.push(Limit::AtMost(number()?)),
                "exclusiveMaximum" => rule.limits.push(Limit::Below(number()?)),
                "multipleOf" => rule.multiple_of = Some(number().filter(|divisor| divisor.is_divisor())?),
                "minLength" => rule.min_chars = value.as_u64()?,
                "maxLength" => rule.max_chars = value.as_u64()?,
                "pattern" => rule.pattern = Some(patterns.compile(value.as_str()?)?),
                "enum" if rule.options.is_none() => rule.options = Some(Options::of(value.as_array()?)),
                "const" if rule.options.is_none() => rule.options = Some(Options::of(std::slice::from_ref(value))),
                annotation if ANNOTATIONS.contains(&annotation) => {}
                _ => return None,
            }
        }
        Some(rule)
    }

    /// True if any cell is valid.
    pub(super) fn asks_nothing(&self) -> bool {
        self.is_text()
            && self.options.is_none()
            && self.pattern.is_none()
            && (self.min_chars, self.max_chars) == (0, u64::MAX)
    }

    /// The types that the property declares.
    pub(super) const fn types(&self) -> Types {
        self.types
    }

    fn is_text(&self) -> bool {
        self.types == Types::ANY || self.types.allows(Types::STRING)
    }

    /// Checks a cell, as what [`coerce`](crate::text::schema::coerce) makes of it.
    #[inline]
    pub(super) fn check(&self, cell: &str) -> Answer {
        if self.types == Types::ANY || (self.is_text() && !(cell.is_empty() && self.types.allows(Types::NULL))) {
            return answer(self.allows_text(cell));
        }
        if cell.is_empty() {
            // Where null is allowed at all, it is allowed by `enum` and `const`: the types are only those of their
            // values.
            return if self.types.allows(Types::NULL) { Answer::Valid } else { Answer::LeftOut };
        }
        let cell = cell.trim_ascii();
        if self.types.allows(Types::INTEGER)
            && let Some(number) = PlainNumber::parse(cell)
        {
            return answer(self.allows_number(number));
        }
        answer(self.types.allows(Types::BOOLEAN) && self.allows_boolean(cell))
    }

    fn allows_text(&self, cell: &str) -> bool {
        let bytes = cell.len() as u64;
        // A character has one to four bytes. So they need not be counted in most cells.
        let fits = (bytes <= self.max_chars && bytes.div_ceil(4) >= self.min_chars) || {
            let chars = cell.chars().count() as u64;
            (self.min_chars..=self.max_chars).contains(&chars)
        };
        fits && self
            .options
            .as_ref()
            .is_none_or(|options| options.texts.binary_search_by(|text| text.as_str().cmp(cell)).is_ok())
            && self.pattern.as_ref().is_none_or(|pattern| pattern.is_match(cell))
    }

    fn allows_number(&self, number: PlainNumber) -> bool {
        let is_option = |options: &Options| match number {
            PlainNumber::Integer(integer) => options.integers.binary_search(&integer).is_ok(),
            PlainNumber::Decimal { .. } => false,
        };
        (self.types.allows(Types::NUMBER) || matches!(number, PlainNumber::Integer(_)))
            && self.limits.iter().all(|limit| limit.allows(number))
            && self.multiple_of.is_none_or(|divisor| number.is_multiple_of(divisor))
            && self.options.as_ref().is_none_or(is_option)
    }

    /// True if the cell is a boolean that is allowed. `1` and `0` are, if they are no numbers.
    fn allows_boolean(&self, cell: &str) -> bool {
        let value = match cell {
            "1" => true,
            "0" => false,
            _ if cell.eq_ignore_ascii_case("true") => true,
            _ if cell.eq_ignore_ascii_case("false") => false,
            _ => return false,
        };
        self.options.as_ref().is_none_or(|options| options.booleans[usize::from(value)])
    }
}

const fn answer(is_valid: bool) -> Answer {
    if is_valid { Answer::Valid } else { Answer::Unsure }
}

impl Options {
    fn of(values: &[Value]) -> Self {
        let mut options = Self::default();
        for value in values {
            match value {
                Value::String(text) => options.texts.push(text.clone()),
                Value::Bool(value) => options.booleans[usize::from(*value)] = true,
                Value::Number(number) => {
                    if let Some(PlainNumber::Integer(integer)) = PlainNumber::parse(&number.to_string()) {
                        options.integers.push(integer);
                    }
                }
                _ => {}
            }
        }
        options.texts.sort_unstable();
        options.integers.sort_unstable();
        options
    }
}

impl Limit {
    fn allows(self, number: PlainNumber) -> bool {
        match self {
            Self::AtLeast(limit) => number.compare(limit).is_some_and(Ordering::is_ge),
            Self::Above(limit) => number.compare(limit).is_some_and(Ordering::is_gt),
            Self::AtMost(limit) => number.compare(limit).is_some_and(Ordering::is_le),
            Self::Below(limit) => number.compare(limit).is_some_and(Ordering::is_lt),
        }
    }
}
