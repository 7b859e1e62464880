//! Converts the text of a cell to a value of the type that the schema declares.

use std::collections::HashMap;

use serde_json::{Map, Number, Value};

/// A set of JSON types.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Types(u8);

impl Types {
    pub(super) const NULL: Self = Self(1);
    pub(super) const BOOLEAN: Self = Self(2);
    pub(super) const INTEGER: Self = Self(4);
    /// Includes integers, because they are numbers too.
    pub(super) const NUMBER: Self = Self(8 | 4);
    pub(super) const STRING: Self = Self(16);
    /// Arrays and objects. No cell can be one.
    const OTHER: Self = Self(32);
    pub(super) const ANY: Self = Self(63);
    pub(super) const NONE: Self = Self(0);

    /// The types that a schema of a single value declares.
    pub(super) fn declared_by(schema: &Value) -> Self {
        Survey { root: schema, steps_left: Survey::STEPS }.types_of(schema, Survey::DEPTH)
    }

    fn named(name: &str) -> Self {
        match name {
            "null" => Self::NULL,
            "boolean" => Self::BOOLEAN,
            "integer" => Self::INTEGER,
            "number" => Self::NUMBER,
            "string" => Self::STRING,
            _ => Self::OTHER,
        }
    }

    fn of(value: &Value) -> Self {
        match value {
            Value::Null => Self::NULL,
            Value::Bool(_) => Self::BOOLEAN,
            Value::Number(_) => Self::NUMBER,
            Value::String(_) => Self::STRING,
            Value::Array(_) | Value::Object(_) => Self::OTHER,
        }
    }

    pub(super) fn allows(self, other: Self) -> bool {
        self.0 & other.0 == other.0
    }

    pub(super) fn and(self, other: Self) -> Self {
        Self(self.0 & other.0)
    }

    pub(super) fn or(self, other: Self) -> Self {
        Self(self.0 | other.0)
    }
}

#[derive(Clone, PartialEq, Debug)]
pub(super) enum Coerced {
    Value(Value),
    /// The cell is empty, and neither null nor a string is allowed: the property is omitted.
    LeftOut,
}

/// The types that a schema declares for the columns.
#[derive(Clone, Debug)]
pub(super) struct ColumnTypes {
    declared: HashMap<String, Types>,
    others: Types,
}

impl ColumnTypes {
    /// Collects the types that a valid schema declares in `properties` and `additionalProperties`. Follows `allOf` and
    /// references within the schema.
    pub(super) fn of(schema: &Value) -> Self {
        let mut survey = Survey { root: schema, steps_left: Survey::STEPS };
        let mut types = Self { declared: HashMap::new(), others: Types::ANY };
        survey.collect(schema, &mut types, Survey::DEPTH);
        types
    }

    pub(super) fn of_column(&self, column: &str) -> Types {
        self.declared.get(column).copied().unwrap_or(self.others)
    }
}

/// A walk over a schema. The number of steps and the depth are bounded, because references can be recursive.
struct Survey<'a> {
    root: &'a Value,
    steps_left: u32,
}

impl<'a> Survey<'a> {
    /// Far more than a sensible schema needs, and few enough to take no noticeable time.
    const STEPS: u32 = 10_000;
    /// References can form cycles.
    const DEPTH: u32 = 32;

    /// The keywords of a schema; `None` at the limits of the walk.
    fn keywords(&mut self, schema: &'a Value, depth: u32) -> Option<&'a Map<String, Value>> {
        self.steps_left = self.steps_left.checked_sub(1)?;
        schema.as_object().filter(|_| depth > 0)
    }

    fn collect(&mut self, schema: &'a Value, types: &mut ColumnTypes, depth: u32) {
        let Some(schema) = self.keywords(schema, depth) else {
            return;
        };
        for (column, property) in schema.get("properties").and_then(Value::as_object).into_iter().flatten() {
            let found = self.types_of(property, depth - 1);
            types.declared.entry(column.clone()).and_modify(|known| *known = known.and(found)).or_insert(found);
        }
        // Columns that match a pattern do not count as "additional". Patterns are only evaluated by the validator.
        if !schema.contains_key("patternProperties")
            && let Some(others) = schema.get("additionalProperties")
        {
            types.others = types.others.and(self.types_of(others, depth - 1));
        }
        if let Some(target) = self.target_of(schema) {
            self.collect(target, types, depth - 1);
        }
        for part in subschemas(schema, "allOf") {
            self.collect(part, types, depth - 1);
        }
    }

    fn types_of(&mut self, schema: &'a Value, depth: u32) -> Types {
        let Some(schema) = self.keywords(schema, depth) else {
            return Types::ANY;
        };
        let mut types = match schema.get("type") {
            Some(Value::String(name)) => Types::named(name),
            Some(Value::Array(names)) => {
                names.iter().filter_map(Value::as_str).map(Types::named).fold(Types::NONE, Types::or)
            }
            _ => Types::ANY,
        };
        if let Some(values) = schema.get("enum").and_then(Value::as_array) {
            types = types.and(values.iter().map(Types::of).fold(Types::NONE, Types::or));
        }
        if let Some(value) = schema.get("const") {
            types = types.and(Types::of(value));
        }
        if let Some(target) = self.target_of(schema) {
            types = types.and(self.types_of(target, depth - 1));
        }
        for part in subschemas(schema, "allOf") {
            types = types.and(self.types_of(part, depth - 1));
        }
        for choice in ["anyOf", "oneOf"] {
            if schema.contains_key(choice) {
                let parts = subschemas(schema, choice);
                types = types.and(parts.iter().map(|part| self.types_of(part, depth - 1)).fold(Types::NONE, Types::or));
            }
        }
        types
    }

    fn target_of(&self, schema: &Map<String, Value>) -> Option<&'a Value> {
        self.root.pointer(schema.get("$ref")?.as_str()?.strip_prefix('#')?)
    }
}

fn subschemas<'a>(schema: &'a Map<String, Value>, keyword: &str) -> &'a [Value] {
    schema.get(keyword).and_then(Value::as_array).map_or(&[], Vec::as_slice)
}

/// Converts a cell. A cell that fits none of the types stays a string, and the validator rejects it.
///
/// If the types include string and others, a cell is converted to another type only if it is written exactly as JSON
/// would write the value: `007` stays a string.
pub(super) fn coerce(cell: &str, types: Types) -> Coerced {
    let text_allowed = types.allows(Types::STRING);
    if types == Types::ANY || types == Types::STRING {
        return Coerced::Value(cell.into());
    }
    if cell.is_empty() && types.allows(Types::NULL) {
        return Coerced::Value(Value::Null);
    }
    if cell.is_empty() && !text_allowed {
        return Coerced::LeftOut;
    }
    match parse(cell.trim_ascii(), types) {
        Some(value) if !text_allowed || is_written_like(&value, cell) => Coerced::Value(value),
        _ => Coerced::Value(cell.into()),
    }
}

/// True if JSON would write the value just as this cell. A decimal number counts if the cell has its shortest form, so
/// that `1.50` and `12E4` stay strings where they may be.
fn is_written_like(value: &Value, cell: &str) -> bool {
    match value {
        Value::Number(number) if !number.is_i64() && !number.is_u64() && cell.contains(['.', 'e', 'E']) => {
            number.as_f64().is_some_and(|float| Value::from(float).to_string().as_str() == cell)
        }
        value => value.to_string().as_str() == cell,
    }
}

/// Tries the types, the narrowest first.
fn parse(text: &str, types: Types) -> Option<Value> {
    if types.allows(Types::INTEGER)
        && let Some(digits) = integer_digits(text)
    {
        return number(digits);
    }
    if types.allows(Types::NUMBER) && is_decimal(text) {
        return number(text);
    }
    if types.allows(Types::BOOLEAN) {
        if text.eq_ignore_ascii_case("true") || text == "1" {
            return Some(true.into());
        }
        if text.eq_ignore_ascii_case("false") || text == "0" {
            return Some(false.into());
        }
    }
    None
}

/// The sign and digits of an integer. A fraction of zeros is removed.
pub(super) fn integer_digits(text: &str) -> Option<&str> {
    let whole = match text.split_once('.') {
        Some((whole, zeros)) if !zeros.is_empty() && zeros.bytes().all(|byte| byte == b'0') => whole,
        Some(_) => return None,
        None => text,
    };
    let digits = whole.strip_prefix(['-', '+']).unwrap_or(whole);
    (!digits.is_empty() && digits.bytes().all(|byte| byte.is_ascii_digit())).then_some(whole)
}

/// True if the text is a finite number in decimal or exponent notation.
pub(super) fn is_decimal(text: &str) -> bool {
    // Excludes words that Rust parses as a float, such as `inf` and `NaN`.
    let plain = text.bytes().all(|byte| byte.is_ascii_digit() || matches!(byte, b'-' | b'+' | b'.' | b'e' | b'E'));
    plain && text.parse().is_ok_and(|float: f64| float.is_finite())
}

/// The number with the digits of this text. What JSON does not allow is left out: a plus sign, zeros in front, a point
/// at either end.
fn number(text: &str) -> Option<Value> {
    // Most numbers are small integers, which need no text of their own. Minus zero keeps its sign.
    if let Ok(integer) = text.parse::<i64>()
        && (integer != 0 || !text.starts_with('-'))
    {
        return Some(Value::Number(integer.into()));
    }
    if let Ok(number) = text.parse() {
        return Some(Value::Number(number));
    }
    let (sign, rest) = match text.strip_prefix('-') {
        Some(rest) => ("-", rest),
        None => ("", text.strip_prefix('+').unwrap_or(text)),
    };
    let (mantissa, exponent) = rest.split_at(rest.find(['e', 'E']).unwrap_or(rest.len()));
    let (whole, fraction) = mantissa.split_once('.').unwrap_or((mantissa, ""));
    let whole = whole.trim_start_matches('0');
    let whole = if whole.is_empty() { "0" } else { whole };
    let point = if fraction.is_empty() { "" } else { "." };
    let number: Number = format!("{sign}{whole}{point}{fraction}{exponent}").parse().ok()?;
    Some(Value::Number(number))
}
