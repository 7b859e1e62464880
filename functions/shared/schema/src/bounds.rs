//! Bounds of a schema, checked before it is compiled: schemas come from users, and a short one can ask for endless work
//! or memory.
//!
//! The bounds cannot catch everything: a recursive reference costs what the rows make of it. Those schemas are left to
//! the item timeout.

use std::collections::{BTreeSet, HashSet};

use referencing::{Draft, Registry, RegistryBuilder, Resolver, ResourceRef, uri};
use regex_automata::nfa::thompson::NFA;
use serde_json::{Map, Value};

use crate::error::SchemaError;
use crate::user_text::shortened;
use crate::validator::{Pattern, Validator};

/// The only supported dialect of JSON Schema.
const DRAFT: Draft = Draft::Draft202012;

/// Its identifier.
const DRAFT_2020_12: &str = "https://json-schema.org/draft/2020-12/schema";

/// Where a schema without `$id` stands.
const BASE: &str = "json-schema:///";

/// The deepest nesting of a schema in which each reference is replaced by its target. Compiling it and checking a row
/// go as deep. A recursive reference counts once.
const DEPTH_MAX: usize = 64;

/// The most subschemas of a schema in which each reference is replaced by its target. A recursive one counts once.
pub(crate) const EXPANDED_MAX: u64 = 10_000;

/// The most patterns of a schema, equal ones counted once.
pub(crate) const PATTERNS_MAX: usize = 200;

pub(crate) const PATTERN_MAX_BYTES: usize = 1_000;

/// The largest size of all patterns of a schema together, compiled to automata, in bytes. A validator takes about four
/// times as much for them. Measured: `\p{L}{100}` has 1.5 MB.
pub(crate) const COMPILED_MAX_BYTES: usize = 4 * 1024 * 1024;

/// Memory limit for the patterns of a schema in use, in bytes: the caches of the automata, for each thread.
const CACHES_MAX_BYTES: usize = 8 * 1024 * 1024;

/// A schema that is within the bounds.
#[derive(Clone, Copy, Debug)]
pub struct Bounded<'a> {
    schema: &'a Value,
    /// The size of its patterns, compiled to automata, in bytes.
    pub compiled_bytes: usize,
    /// The bound of a pattern's cache, in bytes.
    pub(crate) cache_bytes: usize,
    /// Number of different patterns.
    patterns: usize,
}

impl<'a> Bounded<'a> {
    /// Checks the bounds of a schema.
    pub fn of(schema: &'a Value) -> Result<Self, SchemaError> {
        if !schema.is_object() {
            return Err(SchemaError::NotAnObject);
        }
        let mut found = Found::default();
        found.visit(schema, 0)?;
        Expansion::check(schema)?;
        if found.patterns.len() > PATTERNS_MAX {
            return Err(too_large(PATTERNS_MAX as u64, "different patterns", "Remove some of them."));
        }
        let compiled_bytes = compiled_bytes(&found.patterns)?;
        let cache_bytes = (CACHES_MAX_BYTES / found.patterns.len().max(1)).min(1024 * 1024);
        Ok(Self { schema, compiled_bytes, cache_bytes, patterns: found.patterns.len() })
    }

    /// The same bounds, with at most so many bytes for the cache of a pattern.
    #[must_use]
    pub fn with_cache(self, bytes: usize) -> Self {
        Self { cache_bytes: self.cache_bytes.min(bytes), ..self }
    }

    /// Maximum memory of its patterns, in bytes.
    pub fn held_bytes(&self) -> usize {
        4 * self.compiled_bytes + 2 * self.cache_bytes * self.patterns
    }

    /// Compiles the schema.
    pub fn compile(&self) -> Result<Validator, SchemaError> {
        Validator::compile(self.schema, self)
    }

    /// Compiles one of its patterns; `None` if it is not valid.
    pub fn compile_pattern(&self, pattern: &str) -> Option<Pattern> {
        Pattern::compile(pattern, self)
    }
}

/// Checks the dialect that a subschema declares, if it declares one.
fn check_draft(keywords: &Map<String, Value>) -> Result<(), SchemaError> {
    match keywords.get("$schema") {
        Some(Value::String(uri)) if uri.trim_end_matches('#') != DRAFT_2020_12 => {
            Err(SchemaError::OtherDraft { uri: shortened(uri) })
        }
        _ => Ok(()),
    }
}

fn too_large(limit: u64, what: &'static str, advice: &'static str) -> SchemaError {
    SchemaError::TooLarge { limit, what, advice }
}

/// The size of all patterns as automata. Each is compiled within what the others leave, and dropped again. A pattern
/// that is not valid is left to the validator, which explains what is wrong with it.
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

/// Parts of a schema that its bounds are about.
#[derive(Default)]
struct Found<'a> {
    patterns: BTreeSet<&'a str>,
    dynamic_anchors: HashSet<&'a str>,
}

impl<'a> Found<'a> {
    fn visit(&mut self, value: &'a Value, depth: usize) -> Result<(), SchemaError> {
        if depth > DEPTH_MAX {
            return Err(too_large(DEPTH_MAX as u64, "levels", "Nest it less deeply."));
        }
        match value {
            Value::Object(map) => self.visit_object(map, depth),
            Value::Array(values) => values.iter().try_for_each(|value| self.visit(value, depth + 1)),
            _ => Ok(()),
        }
    }

    fn visit_object(&mut self, map: &'a Map<String, Value>, depth: usize) -> Result<(), SchemaError> {
        // Which of several is meant is known when a row is checked, and not before.
        if let Some(name) = map.get("$dynamicAnchor").and_then(Value::as_str)
            && !self.dynamic_anchors.insert(name)
        {
            return Err(too_large(1, "subschemas with the same `$dynamicAnchor`", "Name each of them on its own."));
        }
        self.patterns.extend(map.get("pattern").and_then(Value::as_str));
        let keys = map.get("patternProperties").and_then(Value::as_object).into_iter().flat_map(Map::keys);
        self.patterns.extend(keys.map(String::as_str));
        map.values().try_for_each(|value| self.visit(value, depth + 1))
    }
}

/// A walk through a schema in which each reference is replaced by its target, as compiling it and checking a row go.
///
/// It goes each path on its own: what is behind a reference depends on the path wherever references form a cycle. The
/// bounds end it.
#[derive(Default)]
struct Expansion {
    subschemas: u64,
    /// The targets of the references on the path, by address.
    open: HashSet<*const Value>,
}

impl Expansion {
    /// Walks a whole schema. A reference without a target is left to the validator, which explains it.
    fn check(schema: &Value) -> Result<(), SchemaError> {
        let Ok(registry) = Registry::new().draft(DRAFT).add(BASE, schema).and_then(RegistryBuilder::prepare) else {
            return Ok(());
        };
        let Ok(base) = uri::from_str(BASE) else { return Ok(()) };
        Self::default().subschema(schema, &registry.resolver(base), 0)
    }

    /// Walks a subschema that is so many levels down, but not what is under `$defs`: that counts where it is referred
    /// to.
    fn subschema(&mut self, schema: &Value, resolver: &Resolver<'_>, depth: usize) -> Result<(), SchemaError> {
        let Value::Object(keywords) = schema else { return Ok(()) };
        check_draft(keywords)?;
        self.subschemas += 1;
        if self.subschemas > EXPANDED_MAX {
            let what = "subschemas once each reference is replaced by its target";
            return Err(too_large(EXPANDED_MAX, what, "Refer to fewer subschemas that hold references themselves."));
        }
        if depth > DEPTH_MAX {
            let what = "levels once each reference is replaced by its target";
            return Err(too_large(DEPTH_MAX as u64, what, "Nest it less deeply, or shorten its chains of references."));
        }
        let Ok(resolver) = resolver.in_subresource(ResourceRef::new(schema, DRAFT)) else { return Ok(()) };
        for reference in ["$ref", "$dynamicRef"] {
            if let Some(Value::String(reference)) = keywords.get(reference) {
                self.target(reference, &resolver, depth + 1)?;
            }
        }
        let definitions = ["$defs", "definitions"].into_iter().filter_map(|keyword| keywords.get(keyword)?.as_object());
        let definitions: HashSet<_> = definitions.flat_map(Map::values).map(std::ptr::from_ref).collect();
        DRAFT
            .subresources_of(schema)
            .filter(|part| !definitions.contains(&std::ptr::from_ref(*part)))
            .try_for_each(|part| self.subschema(part, &resolver, depth + 1))
    }

    /// A recursive reference counts once.
    fn target(&mut self, reference: &str, resolver: &Resolver<'_>, depth: usize) -> Result<(), SchemaError> {
        let Ok(resolved) = resolver.lookup(reference) else { return Ok(()) };
        let address = std::ptr::from_ref(resolved.contents());
        if !self.open.insert(address) {
            return Ok(());
        }
        self.subschema(resolved.contents(), resolved.resolver(), depth)?;
        self.open.remove(&address);
        Ok(())
    }
}
