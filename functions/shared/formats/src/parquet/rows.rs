//! Assembles rows from their columns.
//!
//! Each value has two levels. The definition level says how many optional parts of its path are present. The repetition
//! level says at which list of its path a new element begins. The tree of the schema determines how to interpret them.

use std::collections::HashSet;
use std::ops::{ControlFlow, Range};

use parquet::basic::{ConvertedType, LogicalType, Repetition};
use parquet::schema::types::{SchemaDescriptor, Type};

use super::column::{Column, Value};
use super::value::{Meaning, push_base64, push_escaped, push_json, push_text};
use super::{damaged, unsupported};
use crate::blocks::{Block, Blocks, Stopped};
use crate::error::{DecodeError, Place, shortened};

/// Size of the buffer for a row, in bytes; a row can be much longer. A multiple of 3, because pieces of base64 must be.
const BUFFER_BYTES: usize = 48 * 1024;

/// Assembles a part of a row from a range of columns.
pub(super) struct Node {
    columns: Range<usize>,
    shape: Shape,
}

enum Shape {
    /// A value.
    Value(Meaning),
    /// An optional part: null below this definition level.
    Optional { def: i16, inner: Box<Node> },
    /// An object. Each field has its name as JSON, with the colon, as it is written before the value.
    Object(Vec<(Vec<u8>, Node)>),
    /// A list: empty below this definition level.
    List { def: i16, rep: i16, element: Box<Node> },
    /// A map: empty below this definition level. It becomes an object whose names are the keys.
    Map { def: i16, rep: i16, key: Box<Node>, value: Box<Node> },
}

/// The root node, which describes a whole row.
pub(super) fn root(schema: &SchemaDescriptor) -> Result<Node, DecodeError> {
    let mut builder = Builder { schema, next_column: 0 };
    builder.object(schema.root_schema(), 0, 0)
}

struct Builder<'s> {
    schema: &'s SchemaDescriptor,
    next_column: usize,
}

impl Builder<'_> {
    /// The node of a field; `def` and `rep` are the maximum levels of its parent.
    fn field(&mut self, field: &Type, def: i16, rep: i16) -> Result<Node, DecodeError> {
        let start = self.next_column;
        let info = field.get_basic_info();
        let repetition = if info.has_repetition() { info.repetition() } else { Repetition::REQUIRED };
        let shape = match repetition {
            Repetition::REQUIRED => return self.content(field, def, rep),
            Repetition::OPTIONAL => {
                Shape::Optional { def: def + 1, inner: Box::new(self.content(field, def + 1, rep)?) }
            }
            Repetition::REPEATED => {
                let element = Box::new(self.content(field, def + 1, rep + 1)?);
                Shape::List { def: def + 1, rep: rep + 1, element }
            }
        };
        Ok(Node { columns: start..self.next_column, shape })
    }

    /// The node of a field's content, without its repetition type.
    fn content(&mut self, field: &Type, def: i16, rep: i16) -> Result<Node, DecodeError> {
        let start = self.next_column;
        if field.is_primitive() {
            self.next_column += 1;
            let shape = Shape::Value(Meaning::of(&self.schema.column(start))?);
            return Ok(Node { columns: start..self.next_column, shape });
        }
        let info = field.get_basic_info();
        let is = |logical, converted: &[ConvertedType]| {
            info.logical_type_ref() == Some(&logical) || converted.contains(&info.converted_type())
        };
        let [repeated] = field.get_fields() else { return self.object(field, def, rep) };
        if repeated.get_basic_info().repetition() != Repetition::REPEATED {
            return self.object(field, def, rep);
        }
        let (def, rep) = (def + 1, rep + 1);
        let shape = if is(LogicalType::List, &[ConvertedType::LIST]) {
            let element = match is_element(repeated, field.name()) {
                true => self.content(repeated, def, rep)?,
                false => self.field(&repeated.get_fields()[0], def, rep)?,
            };
            Shape::List { def, rep, element: Box::new(element) }
        } else if is(LogicalType::Map, &[ConvertedType::MAP, ConvertedType::MAP_KEY_VALUE])
            && repeated.is_group()
            && let [key, value] = repeated.get_fields()
            && key.is_primitive()
        {
            let (key, value) = (self.field(key, def, rep)?, self.field(value, def, rep)?);
            Shape::Map { def, rep, key: Box::new(key), value: Box::new(value) }
        } else {
            return self.object(field, def - 1, rep - 1);
        };
        Ok(Node { columns: start..self.next_column, shape })
    }

    fn object(&mut self, group: &Type, def: i16, rep: i16) -> Result<Node, DecodeError> {
        let start = self.next_column;
        let mut names = HashSet::new();
        let mut fields = Vec::new();
        for field in group.get_fields() {
            if !names.insert(field.name()) {
                let what = format!("has two columns named `{}`", shortened(field.name()));
                return Err(unsupported(what, "Give each column a unique name."));
            }
            let mut name = Vec::new();
            push_text(&mut name, field.name().as_bytes());
            name.push(b':');
            fields.push((name, self.field(field, def, rep)?));
        }
        Ok(Node { columns: start..self.next_column, shape: Shape::Object(fields) })
    }
}

/// True if the repeated field of a list is the element itself, as older writers wrote it, not a group around the
/// element. See the rules for lists in Parquet's LogicalTypes.md.
fn is_element(repeated: &Type, list_name: &str) -> bool {
    if repeated.is_primitive() {
        return true;
    }
    let [only] = repeated.get_fields() else { return true };
    only.get_basic_info().repetition() == Repetition::REPEATED
        || repeated.name() == "array"
        || repeated.name().strip_suffix("_tuple") == Some(list_name)
}

/// Writes rows as JSON Lines.
pub(super) struct Rows<'b, 'w, S> {
    blocks: &'b mut Blocks<'w, S>,
    buffer: Vec<u8>,
    row: u64,
    record_max_bytes: usize,
}

impl<'b, 'w, S: FnMut(Block<'_>) -> ControlFlow<()>> Rows<'b, 'w, S> {
    pub(super) fn new(blocks: &'b mut Blocks<'w, S>, record_max_bytes: usize) -> Self {
        Self { blocks, buffer: Vec::new(), row: 0, record_max_bytes }
    }

    /// Writes the current row of the columns. `consumed` is the number of bytes of the file that are consumed after it.
    pub(super) fn row(&mut self, root: &Node, columns: &mut [Column], consumed: u64) -> Result<(), Stopped> {
        self.row += 1;
        self.node(root, columns)?;
        self.buffer.push(b'\n');
        self.blocks.set_consumed(consumed);
        self.flush()
    }

    fn flush(&mut self) -> Result<(), Stopped> {
        self.blocks.write(&self.buffer)?;
        self.buffer.clear();
        Ok(())
    }

    fn node(&mut self, node: &Node, columns: &mut [Column]) -> Result<(), Stopped> {
        // All columns of a part have levels that say whether the part is present. The first column is enough.
        let first = node.columns.start;
        match &node.shape {
            Shape::Value(meaning) => {
                match columns[first].take()? {
                    Value::Bytes(bytes) if bytes.len() > BUFFER_BYTES => self.long_value(bytes, *meaning)?,
                    value => push_json(&mut self.buffer, value, *meaning),
                }
                if self.buffer.len() > BUFFER_BYTES { self.flush() } else { Ok(()) }
            }
            Shape::Optional { def, .. } if columns[first].def_level()? < *def => self.missing(node, columns, b"null"),
            Shape::Optional { inner, .. } => self.node(inner, columns),
            Shape::Object(fields) => self.object(fields, columns),
            Shape::List { def, .. } if columns[first].def_level()? < *def => self.missing(node, columns, b"[]"),
            Shape::List { rep, element, .. } => {
                self.buffer.push(b'[');
                loop {
                    self.node(element, columns)?;
                    if !has_next(&columns[first], *rep)? {
                        break;
                    }
                    self.buffer.push(b',');
                }
                self.buffer.push(b']');
                Ok(())
            }
            Shape::Map { def, .. } if columns[first].def_level()? < *def => self.missing(node, columns, b"{}"),
            Shape::Map { rep, key, value, .. } => {
                self.buffer.push(b'{');
                loop {
                    self.key(key, columns)?;
                    self.buffer.push(b':');
                    self.node(value, columns)?;
                    if !has_next(&columns[first], *rep)? {
                        break;
                    }
                    self.buffer.push(b',');
                }
                self.buffer.push(b'}');
                Ok(())
            }
        }
    }

    fn object(&mut self, fields: &[(Vec<u8>, Node)], columns: &mut [Column]) -> Result<(), Stopped> {
        self.buffer.push(b'{');
        for (index, (name, field)) in fields.iter().enumerate() {
            if index > 0 {
                self.buffer.push(b',');
            }
            self.buffer.extend_from_slice(name);
            self.node(field, columns)?;
        }
        self.buffer.push(b'}');
        Ok(())
    }

    /// Writes a long value piece by piece, to avoid a second copy of it.
    fn long_value(&mut self, bytes: &[u8], meaning: Meaning) -> Result<(), Stopped> {
        let push_piece = if meaning == Meaning::Text { push_escaped } else { push_base64 };
        self.buffer.push(b'"');
        for piece in bytes.chunks(BUFFER_BYTES) {
            push_piece(&mut self.buffer, piece);
            self.flush()?;
        }
        self.buffer.push(b'"');
        Ok(())
    }

    /// Writes `written` for a missing part, and skips its nulls in all of its columns.
    fn missing(&mut self, node: &Node, columns: &mut [Column], written: &[u8]) -> Result<(), Stopped> {
        self.buffer.extend_from_slice(written);
        for column in &mut columns[node.columns.clone()] {
            column.skip_null()?;
        }
        Ok(())
    }

    /// Writes a map key as the name of an object field. A key that is not a string is converted to one.
    fn key(&mut self, key: &Node, columns: &mut [Column]) -> Result<(), Stopped> {
        let start = self.buffer.len();
        let (meaning, is_null) = match &key.shape {
            Shape::Optional { def, inner } => match inner.shape {
                Shape::Value(meaning) => (meaning, columns[key.columns.start].def_level()? < *def),
                _ => return Err(contradiction().into()),
            },
            Shape::Value(meaning) => (*meaning, false),
            _ => return Err(contradiction().into()),
        };
        if is_null {
            return self.missing(key, columns, b"\"null\"");
        }
        let value = columns[key.columns.start].take()?;
        if let Value::Bytes(bytes) = value
            && bytes.len() > self.record_max_bytes
        {
            let (row, limit) = (self.row, self.record_max_bytes as u64);
            return Err(DecodeError::RecordTooLong { what: "A key of a map", row, limit, unit: "bytes" }.into());
        }
        push_json(&mut self.buffer, value, meaning);
        if self.buffer[start] != b'"' {
            self.buffer.insert(start, b'"');
            self.buffer.push(b'"');
        }
        Ok(())
    }
}

/// True if the list with this repetition level has another element.
fn has_next(column: &Column, rep: i16) -> Result<bool, DecodeError> {
    match column.rep_level() {
        next if next > rep => Err(contradiction()),
        next => Ok(next == rep),
    }
}

fn contradiction() -> DecodeError {
    damaged(Place::Somewhere, "its columns contradict each other")
}
