//! Writes Parquet files in which every number can be forged.

use super::thrift::Struct;

pub const INT32: i64 = 1;
pub const BYTE_ARRAY: i64 = 6;
pub const FIXED_LEN_BYTE_ARRAY: i64 = 7;
pub const REQUIRED: i64 = 0;
pub const REPEATED: i64 = 2;
pub const PLAIN: i64 = 0;
pub const RLE: i64 = 3;
pub const UNCOMPRESSED: i64 = 0;
pub const GZIP: i64 = 2;

/// A file with one column in one row group. Every number in it can be forged.
pub struct Forged {
    pub kind: i64,
    /// The length of a fixed-length value in the schema.
    pub length: Option<i64>,
    /// Adds the column's logical type to its fields in the schema.
    pub meaning: Box<dyn Fn(Struct) -> Struct>,
    pub repetition: i64,
    pub codec: i64,
    pub rows: i64,
    pub values: i64,
    pub pages: Vec<u8>,
}

impl Forged {
    pub fn new(pages: Vec<u8>) -> Self {
        Self {
            kind: INT32,
            length: None,
            meaning: Box::new(|column| column),
            repetition: REQUIRED,
            codec: UNCOMPRESSED,
            rows: 1,
            values: 1,
            pages,
        }
    }

    pub fn bytes(self) -> Vec<u8> {
        let column = Struct::default().int(1, self.kind);
        let column = match self.length {
            Some(length) => column.int(2, length),
            None => column,
        };
        let column = (self.meaning)(column.int(3, self.repetition).text(4, "a"));
        let schema = [Struct::default().text(4, "rows").int(5, 1), column];
        let chunk = Struct::default()
            .int(1, self.kind)
            .ints(2, &[PLAIN])
            .texts(3, &["a"])
            .int(4, self.codec)
            .int(5, self.values)
            .int(6, self.pages.len() as i64)
            .int(7, self.pages.len() as i64)
            .int(9, 4);
        let group =
            Struct::default().children(1, [Struct::default().int(2, 4).child(3, chunk)]).int(2, 0).int(3, self.rows);
        with_footer(self.pages, Struct::default().int(1, 1).children(2, schema).int(3, self.rows).children(4, [group]))
    }
}

pub fn with_footer(pages: Vec<u8>, footer: Struct) -> Vec<u8> {
    let footer = footer.finish();
    [b"PAR1", pages.as_slice(), &footer, &(footer.len() as u32).to_le_bytes(), b"PAR1"].concat()
}

/// A footer with one column and these row groups.
pub fn footer_of(groups: impl IntoIterator<Item = Struct>) -> Struct {
    let column = Struct::default().int(1, INT32).int(3, REQUIRED).text(4, "a");
    let schema = [Struct::default().text(4, "rows").int(5, 1), column];
    Struct::default().int(1, 1).children(2, schema).int(3, 0).children(4, groups)
}

pub fn header(kind: i64, size: usize, compressed: usize) -> Struct {
    Struct::default().int(1, kind).int(2, size as i64).int(3, compressed as i64)
}

pub fn data_page(values: i64, encoding: i64, size: usize, content: &[u8]) -> Vec<u8> {
    let data = Struct::default().int(1, values).int(2, encoding).int(3, RLE).int(4, RLE);
    [header(0, size, content.len()).child(5, data).finish(), content.to_vec()].concat()
}
