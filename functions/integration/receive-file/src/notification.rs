//! The bucket's notifications of dropped objects.

use jiff::Timestamp;
use rowmill_core::model::ids::FileGuid;
use rowmill_core::model::keys;
use serde::Deserialize;
use sha2::{Digest, Sha256};
use uuid::Builder;

/// A message of the inbox queue.
#[derive(Clone, PartialEq, Eq, Debug, Deserialize)]
#[serde(untagged)]
pub enum Notification {
    /// Objects were created.
    Event {
        /// One for each object; S3 sends one at a time.
        #[serde(rename = "Records")]
        records: Vec<Record>,
    },
    /// Sent once when notifications are set up, as a test.
    Test {
        /// `s3:TestEvent`.
        #[serde(rename = "Event")]
        event: String,
    },
}

/// An object was created.
#[derive(Clone, PartialEq, Eq, Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Record {
    event_time: Timestamp,
    s3: Entity,
}

#[derive(Clone, PartialEq, Eq, Debug, Deserialize)]
struct Entity {
    bucket: BucketEntity,
    object: ObjectEntity,
}

#[derive(Clone, PartialEq, Eq, Debug, Deserialize)]
struct BucketEntity {
    name: String,
}

#[derive(Clone, PartialEq, Eq, Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
struct ObjectEntity {
    key: String,
    e_tag: String,
    /// Grows with each write of a key. Missing if another service stands in for S3.
    #[serde(default)]
    sequencer: String,
    #[serde(default)]
    version_id: String,
}

/// A dropped object, as it was at that time.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Dropped {
    pub key: String,
    /// Its entity tag, with its quotes.
    pub etag: String,
    /// Distinguishes this drop from others of the same bytes on the same key.
    pub sequence: String,
    pub at: Timestamp,
}

impl Record {
    pub fn bucket(&self) -> &str {
        &self.s3.bucket.name
    }

    /// The dropped object. `None` if its key is not UTF-8, which no key of S3 is.
    pub fn drop(&self) -> Option<Dropped> {
        let ObjectEntity { key, e_tag, sequencer, version_id } = &self.s3.object;
        let key = keys::decoded(key)?;
        let etag = format!("\"{}\"", e_tag.trim_matches('"'));
        Some(Dropped { key, etag, sequence: format!("{sequencer}/{version_id}"), at: self.event_time })
    }
}

impl Dropped {
    /// The name of this drop's upload. The same notification, however often it arrives, gives the same name.
    pub fn file_guid(&self) -> FileGuid {
        let mut digest = Sha256::new();
        for part in [&self.key, &self.etag, &self.sequence] {
            digest.update((part.len() as u64).to_be_bytes());
            digest.update(part);
        }
        let digest: [u8; 32] = digest.finalize().into();
        let mut bytes = [0; 16];
        bytes.copy_from_slice(&digest[..16]);
        FileGuid(Builder::from_custom_bytes(bytes).into_uuid())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn record(key: &str, sequencer: &str) -> Record {
        let text = format!(
            r#"{{"Records":[{{"eventVersion":"2.1","eventSource":"aws:s3","awsRegion":"us-west-2",
                "eventTime":"2025-06-15T15:06:40.123Z","eventName":"ObjectCreated:Put",
                "userIdentity":{{"principalId":"A"}},"requestParameters":{{"sourceIPAddress":"127.0.0.1"}},
                "responseElements":{{"x-amz-request-id":"C3D13FE58DE4C810"}},
                "s3":{{"s3SchemaVersion":"1.0","configurationId":"inbox",
                    "bucket":{{"name":"files","ownerIdentity":{{"principalId":"A"}},"arn":"arn:aws:s3:::files"}},
                    "object":{{"key":"{key}","size":1024,"eTag":"d41d8cd98f00b204e9800998ecf8427e",
                        "sequencer":"{sequencer}"}}}}}}]}}"#
        );
        match serde_json::from_str(&text).unwrap() {
            Notification::Event { mut records } => records.remove(0),
            Notification::Test { .. } => panic!("an event"),
        }
    }

    #[test]
    fn an_escaped_key_is_decoded() {
        let key = |escaped: &str| record(escaped, "1").drop().map(|drop| drop.key);
        assert_eq!(key("inbox/import/plain.csv").unwrap(), "inbox/import/plain.csv");
        assert_eq!(key("inbox/import/a+b%2Bc%26d%3De.csv").unwrap(), "inbox/import/a b+c&d=e.csv");
        assert_eq!(key("inbox/import/gr%C3%B6%C3%9Fe+%251.csv").unwrap(), "inbox/import/größe %1.csv");
        assert_eq!(key("inbox/import/%FF.csv"), None);
    }

    #[test]
    fn a_record_has_the_bucket_etag_and_time_of_the_drop() {
        let drop = record("inbox/import/a.csv", "0A1B").drop().unwrap();
        assert_eq!(drop.etag, "\"d41d8cd98f00b204e9800998ecf8427e\"");
        assert_eq!(drop.at.to_string(), "2025-06-15T15:06:40.123Z");
        assert_eq!(record("a", "1").bucket(), "files");
    }

    #[test]
    fn the_upload_guid_is_derived_from_the_drop() {
        let guid = |key: &str, sequencer: &str| record(key, sequencer).drop().unwrap().file_guid();
        let drop = guid("inbox/import/a.csv", "1");
        assert_eq!(drop, guid("inbox/import/a.csv", "1"));
        assert_ne!(drop, guid("inbox/import/a.csv", "2"));
        assert_ne!(drop, guid("inbox/import/b.csv", "1"));
        assert_eq!(drop.0.get_version_num(), 8);
    }

    #[test]
    fn the_test_event_is_recognised_and_other_messages_are_invalid() {
        let test = r#"{"Service":"Amazon S3","Event":"s3:TestEvent","Time":"2014-10-13T15:57:02.089Z",
            "Bucket":"files","RequestId":"5582815E1AEA5ADF","HostId":"8cLeGAmw098X5cv4Zkwcmo8vvZa3eH3eKxsPzbB9wrR"}"#;
        let read = |text: &str| serde_json::from_str::<Notification>(text);
        assert_eq!(read(test).unwrap(), Notification::Test { event: "s3:TestEvent".into() });
        assert!(read(r#"{"jobGuid":"x"}"#).is_err());
    }
}
