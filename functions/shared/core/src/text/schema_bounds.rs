//! Bounds of a schema, checked before it is compiled: schemas come from users, and a short one can ask for endless work or
//! memory.
//!
//! The bounds cannot catch everything: a recursive reference costs what the rows make of it. Those schemas are left to the
//! item timeout.

use std::collections::{BTreeSet, HashMap, HashSet};

use regex_automata::nfa::thompson::NFA;
use serde_json::{Map, Value};

use super::schema_error::SchemaError;

/// The deepest nesting of a schema.
const DEPTH_MAX: usize = 64;

/// The most subschemas of a schema in which each reference is replaced by its target. A recursive reference counts once.
pub(super) const EXPANDED_MAX: u64 = 10_000;

/// The most patterns of a schema, equal ones counted once.
pub(super) const PATTERNS_MAX: usize = 200;

/// The longest pattern, in bytes.
pub(super) const PATTERN_MAX_BYTES: usize = 1_000;

/// The largest size of all patterns of a schema together, compiled to automata, in bytes. A validator takes about four
/// times as much for them. Measured: `\p{L}{100}` has 1.5 MB.
pub(super) const COMPILED_MAX_BYTES: usize = 4 * 1024 * 1024;

/// What the patterns of a schema may take when they are used, in bytes: the caches of the automata, for each thread.
const CACHES_MAX_BYTES: usize = 8 * 1024 * 1024;

/// What is known of a schema within the bounds.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Bounded {
    /// The size of its patterns, compiled to automata, in bytes.
    pub compiled_bytes: usize,
    /// The bound of a pattern's cache, in bytes.
    pub cache_bytes: usize,
    /// What its patterns take in memory at most, in bytes.
    pub held_bytes: usize,
}

/// Checks the bounds of a schema.
///
/// # Errors
/// [`SchemaError::TooLarge`].
pub(super) fn check_bounds(schema: &Value) -> Result<Bounded, SchemaError> {
    let mut found = Found::default();
    found.visit(schema, 0)?;
    if Expansion::of(schema, &found).total(schema) > EXPANDED_MAX {
        let advice = "Refer to fewer subschemas that hold references themselves.";
        return Err(too_large(EXPANDED_MAX, "subschemas once each reference is replaced by its target", advice));
    }
    if found.patterns.len() > PATTERNS_MAX {
        return Err(too_large(PATTERNS_MAX as u64, "different patterns", "Remove some of them."));
    }
    let compiled_bytes = compiled_bytes(&found.patterns)?;
    let cache_bytes = (CACHES_MAX_BYTES / found.patterns.len().max(1)).min(1024 * 1024);
    let held_bytes = 4 * compiled_bytes + 2 * cache_bytes * found.patterns.len();
    Ok(Bounded { compiled_bytes, cache_bytes, held_bytes })
}

fn too_large(limit: u64, what: &'static str, advice: &'static str) -> SchemaError {
    SchemaError::TooLarge { limit, what, advice }
}

/// The size of all patterns as automata. Each is compiled within what the others leave, and dropped again. A pattern that
/// is not valid is left to the validator, which explains what is wrong with it.
fn compiled_bytes(patterns: &BTreeSet<&str>) -> Result<usize, SchemaError> {
    let mut total = 0;
    for pattern in patterns {
        if pattern.len() > PATTERN_MAX_BYTES {
            return Err(too_large(PATTERN_MAX_BYTES as u64, "bytes in one pattern", "Shorten the pattern."));
        }
        let Ok(translated) = jsonschema_regex::to_rust_regex(pattern) else { continue };
        let config = NFA::config().nfa_size_limit(Some(COMPILED_MAX_BYTES - total));
        match NFA::compiler().configure(config).build(&translated) {
            Ok(automaton) => total += automaton.memory_usage(),
            Err(error) if error.size_limit().is_some() => {
                let what = "bytes of compiled patterns";
                let advice = "Use smaller repetitions and character classes in the patterns, or `maxLength`.";
                return Err(too_large(COMPILED_MAX_BYTES as u64, what, advice));
            }
            Err(_) => {}
        }
        // An automaton of nearly no size must not leave the next one without a limit.
        if total >= COMPILED_MAX_BYTES {
            total = COMPILED_MAX_BYTES - 1;
        }
    }
    Ok(total)
}

/// What a schema holds.
#[derive(Default)]
struct Found<'a> {
    patterns: BTreeSet<&'a str>,
    /// The subschemas that references name, by anchor and by `$id`.
    named: HashMap<&'a str, &'a Value>,
}

impl<'a> Found<'a> {
    fn visit(&mut self, value: &'a Value, depth: usize) -> Result<(), SchemaError> {
        if depth > DEPTH_MAX {
            return Err(too_large(DEPTH_MAX as u64, "levels", "Nest it less deeply."));
        }
        match value {
            Value::Object(map) => self.visit_object(value, map, depth),
            Value::Array(values) => values.iter().try_for_each(|value| self.visit(value, depth + 1)),
            _ => Ok(()),
        }
    }

    fn visit_object(&mut self, value: &'a Value, map: &'a Map<String, Value>, depth: usize) -> Result<(), SchemaError> {
        for name in ["$id", "$anchor", "$dynamicAnchor"] {
            if let Some(name) = map.get(name).and_then(Value::as_str) {
                self.named.insert(name, value);
            }
        }
        self.patterns.extend(map.get("pattern").and_then(Value::as_str));
        let keys = map.get("patternProperties").and_then(Value::as_object).into_iter().flat_map(Map::keys);
        self.patterns.extend(keys.map(String::as_str));
        map.values().try_for_each(|value| self.visit(value, depth + 1))
    }
}

/// Counts the subschemas behind all paths through references.
struct Expansion<'a, 'f> {
    root: &'a Value,
    found: &'f Found<'a>,
    /// The counted targets of references, by address.
    known: HashMap<*const Value, u64>,
    /// The targets that are being counted.
    open: HashSet<*const Value>,
}

impl<'a, 'f> Expansion<'a, 'f> {
    fn of(root: &'a Value, found: &'f Found<'a>) -> Self {
        Self { root, found, known: HashMap::new(), open: HashSet::new() }
    }

    /// The subschemas in this part, without those under `$defs`, which count where they are referred to.
    fn total(&mut self, value: &'a Value) -> u64 {
        match value {
            Value::Object(map) => {
                let mut total = 1_u64;
                for (keyword, value) in map {
                    total = total.saturating_add(match (keyword.as_str(), value) {
                        ("$defs" | "definitions" | "const" | "enum" | "default" | "examples", _) => 0,
                        ("$ref" | "$dynamicRef", Value::String(reference)) => self.target(reference),
                        _ => self.total(value),
                    });
                }
                total
            }
            Value::Array(values) => values.iter().fold(0, |total, value| total.saturating_add(self.total(value))),
            _ => 0,
        }
    }

    fn target(&mut self, reference: &str) -> u64 {
        let Some(target) = self.resolve(reference) else { return 1 };
        let address = std::ptr::from_ref(target);
        if let Some(known) = self.known.get(&address) {
            return *known;
        }
        if !self.open.insert(address) {
            return 1;
        }
        let total = self.total(target);
        self.open.remove(&address);
        self.known.insert(address, total);
        total
    }

    fn resolve(&self, reference: &str) -> Option<&'a Value> {
        let (base, fragment) = reference.split_once('#').unwrap_or((reference, ""));
        let base = if base.is_empty() { self.root } else { self.found.named.get(base).copied()? };
        match fragment {
            "" => Some(base),
            pointer if pointer.starts_with('/') => base.pointer(&unescaped(pointer)),
            anchor => self.found.named.get(anchor).copied(),
        }
    }
}

/// A JSON Pointer without the percent-encoding of a URI's fragment.
fn unescaped(pointer: &str) -> String {
    let mut bytes = Vec::with_capacity(pointer.len());
    let mut rest = pointer.as_bytes();
    while let [first, after @ ..] = rest {
        let code = after.get(..2).and_then(|digits| std::str::from_utf8(digits).ok());
        match code.and_then(|digits| u8::from_str_radix(digits, 16).ok()).filter(|_| *first == b'%') {
            Some(code) => {
                bytes.push(code);
                rest = &after[2..];
            }
            None => {
                bytes.push(*first);
                rest = after;
            }
        }
    }
    String::from_utf8_lossy(&bytes).into_owned()
}
