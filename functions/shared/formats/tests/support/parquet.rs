//! Writes Parquet files with the writer of the crate `parquet`.

use std::sync::Arc;

use parquet::basic::{Compression, ZstdLevel};
use parquet::column::writer::ColumnWriter;
use parquet::data_type::{ByteArray, FixedLenByteArray, Int96};
use parquet::file::properties::{WriterProperties, WriterPropertiesBuilder, WriterVersion};
use parquet::file::writer::SerializedFileWriter;
use parquet::schema::parser::parse_message_type;

/// The values of a column with their levels. A required, flat column has no levels.
#[derive(Clone, Debug)]
pub struct Column {
    pub values: Values,
    pub def: Vec<i16>,
    pub rep: Vec<i16>,
}

#[derive(Clone, Debug)]
pub enum Values {
    Boolean(Vec<bool>),
    Int32(Vec<i32>),
    Int64(Vec<i64>),
    Int96(Vec<Int96>),
    Float(Vec<f32>),
    Double(Vec<f64>),
    Bytes(Vec<Vec<u8>>),
    FixedBytes(Vec<Vec<u8>>),
}

pub fn required(values: Values) -> Column {
    Column { values, def: Vec::new(), rep: Vec::new() }
}

pub fn optional(values: Values, def: Vec<i16>) -> Column {
    Column { values, def, rep: Vec::new() }
}

pub fn texts(texts: &[&str]) -> Values {
    Values::Bytes(texts.iter().map(|text| text.as_bytes().to_vec()).collect())
}

pub fn codecs() -> [Compression; 6] {
    [
        Compression::UNCOMPRESSED,
        Compression::SNAPPY,
        Compression::GZIP(Default::default()),
        Compression::ZSTD(ZstdLevel::default()),
        Compression::LZ4_RAW,
        Compression::LZ4,
    ]
}

pub fn v1() -> WriterPropertiesBuilder {
    WriterProperties::builder().set_writer_version(WriterVersion::PARQUET_1_0)
}

pub fn v2() -> WriterPropertiesBuilder {
    WriterProperties::builder().set_writer_version(WriterVersion::PARQUET_2_0)
}

/// A file with these row groups.
pub fn file(schema: &str, properties: WriterPropertiesBuilder, row_groups: &[Vec<Column>]) -> Vec<u8> {
    let schema = Arc::new(parse_message_type(schema).unwrap());
    let mut writer = SerializedFileWriter::new(Vec::new(), schema, Arc::new(properties.build())).unwrap();
    for row_group in row_groups {
        let mut group = writer.next_row_group().unwrap();
        for column in row_group {
            let mut target = group.next_column().unwrap().expect("a column of the schema");
            write(target.untyped(), column);
            target.close().unwrap();
        }
        assert!(group.next_column().unwrap().is_none(), "a column is missing");
        group.close().unwrap();
    }
    writer.into_inner().unwrap()
}

fn write(target: &mut ColumnWriter<'_>, column: &Column) {
    let def = (!column.def.is_empty()).then_some(column.def.as_slice());
    let rep = (!column.rep.is_empty()).then_some(column.rep.as_slice());
    match (target, &column.values) {
        (ColumnWriter::BoolColumnWriter(target), Values::Boolean(values)) => target.write_batch(values, def, rep),
        (ColumnWriter::Int32ColumnWriter(target), Values::Int32(values)) => target.write_batch(values, def, rep),
        (ColumnWriter::Int64ColumnWriter(target), Values::Int64(values)) => target.write_batch(values, def, rep),
        (ColumnWriter::Int96ColumnWriter(target), Values::Int96(values)) => target.write_batch(values, def, rep),
        (ColumnWriter::FloatColumnWriter(target), Values::Float(values)) => target.write_batch(values, def, rep),
        (ColumnWriter::DoubleColumnWriter(target), Values::Double(values)) => target.write_batch(values, def, rep),
        (ColumnWriter::ByteArrayColumnWriter(target), Values::Bytes(values)) => {
            let values: Vec<ByteArray> = values.iter().cloned().map(ByteArray::from).collect();
            target.write_batch(&values, def, rep)
        }
        (ColumnWriter::FixedLenByteArrayColumnWriter(target), Values::FixedBytes(values)) => {
            let values: Vec<FixedLenByteArray> =
                values.iter().cloned().map(|value| ByteArray::from(value).into()).collect();
            target.write_batch(&values, def, rep)
        }
        (_, values) => panic!("the schema does not have {values:?} here"),
    }
    .unwrap();
}
