//! Writes Thrift's compact protocol.

/// A struct that is being written.
#[derive(Clone, Default)]
pub struct Struct {
    bytes: Vec<u8>,
    last: u8,
}

impl Struct {
    fn field(mut self, id: u8, kind: u8) -> Self {
        self.bytes.push((id - self.last) << 4 | kind);
        self.last = id;
        self
    }

    pub fn int(self, id: u8, value: i64) -> Self {
        let mut this = self.field(id, 6);
        push_varint(&mut this.bytes, (value << 1 ^ value >> 63) as u64);
        this
    }

    pub fn text(self, id: u8, value: &str) -> Self {
        let mut this = self.field(id, 8);
        push_varint(&mut this.bytes, value.len() as u64);
        this.bytes.extend_from_slice(value.as_bytes());
        this
    }

    pub fn child(self, id: u8, child: Self) -> Self {
        let mut this = self.field(id, 12);
        this.bytes.extend(child.finish());
        this
    }

    pub fn children(self, id: u8, children: impl IntoIterator<Item = Self>) -> Self {
        let children: Vec<Vec<u8>> = children.into_iter().map(Self::finish).collect();
        let mut this = self.field(id, 9);
        this.bytes.push(0xFC);
        push_varint(&mut this.bytes, children.len() as u64);
        this.bytes.extend(children.concat());
        this
    }

    pub fn ints(self, id: u8, values: &[i64]) -> Self {
        let mut this = self.field(id, 9);
        this.bytes.push(0xF5);
        push_varint(&mut this.bytes, values.len() as u64);
        for value in values {
            push_varint(&mut this.bytes, (value << 1 ^ value >> 63) as u64);
        }
        this
    }

    pub fn texts(self, id: u8, values: &[&str]) -> Self {
        let mut this = self.field(id, 9);
        this.bytes.push(0xF8);
        push_varint(&mut this.bytes, values.len() as u64);
        for value in values {
            push_varint(&mut this.bytes, value.len() as u64);
            this.bytes.extend_from_slice(value.as_bytes());
        }
        this
    }

    pub fn finish(mut self) -> Vec<u8> {
        self.bytes.push(0);
        self.bytes
    }
}

pub fn push_varint(bytes: &mut Vec<u8>, mut value: u64) {
    while value >= 0x80 {
        bytes.push(value as u8 | 0x80);
        value >>= 7;
    }
    bytes.push(value as u8);
}
