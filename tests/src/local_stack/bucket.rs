//! The bucket, as somebody who sends or drops files into it sees it.

use std::ops::Range;
use std::time::{Duration, Instant};

use aws_sdk_s3::types::{CompletedMultipartUpload, CompletedPart};
use bytes::Bytes;
use reqwest::{RequestBuilder, StatusCode};
use serde_json::Value;

use super::{LocalStack, PATIENCE};

impl LocalStack {
    /// A request to a presigned URL.
    ///
    /// # Panics
    /// If the URL belongs to the API: [`call`](Self::call) checks its answers.
    pub fn presigned(&self, method: &str, url: &str) -> RequestBuilder {
        assert!(!url.starts_with(self.api_url()), "{url} is not presigned");
        self.http.request(method.parse().expect("a method"), url)
    }

    /// Sends bytes with a presigned request exactly as the API gave it.
    pub async fn send_signed(&self, signed: &Value, bytes: Vec<u8>) -> StatusCode {
        let text = |value: &Value| value.as_str().expect("a text").to_owned();
        let mut request = self.presigned(&text(&signed["method"]), &text(&signed["url"]));
        for (name, value) in signed["headers"].as_object().expect("headers") {
            // The HTTP client writes the length itself, and it must be the same.
            match name.as_str() {
                "content-length" => assert_eq!(text(value), bytes.len().to_string()),
                _ => request = request.header(name, text(value)),
            }
        }
        request.body(bytes).send().await.expect("the bucket answers").status()
    }

    /// These bytes of an object.
    pub async fn object_range(&self, key: &str, range: Range<usize>) -> Bytes {
        let range = format!("bytes={}-{}", range.start, range.end - 1);
        let request = self.s3.get_object().bucket(self.output("Bucket")).key(key).range(range);
        let answer = request.send().await.expect("the object is there");
        answer.body.collect().await.expect("all of it").into_bytes()
    }

    /// Drops a file with these notes on it; its entity tag.
    pub async fn drop_file(&self, key: &str, bytes: impl Into<Vec<u8>>, notes: &[(&str, &str)]) -> String {
        let mut request = self.s3.put_object().bucket(self.output("Bucket")).key(key).content_type("text/csv");
        for (name, note) in notes {
            request = request.metadata(*name, *note);
        }
        let answer = request.body(bytes.into().into()).send().await.expect("the bucket takes it");
        answer.e_tag.expect("an entity tag")
    }

    /// Makes an external bucket, unless it is there.
    pub async fn make_bucket(&self, bucket: &str) {
        self.s3.create_bucket().bucket(bucket).send().await.ok();
    }

    /// The bytes of an object in an external bucket.
    pub async fn object_in(&self, bucket: &str, key: &str) -> Bytes {
        let answer = self.s3.get_object().bucket(bucket).key(key).send().await.expect("the object is there");
        answer.body.collect().await.expect("all of it").into_bytes()
    }

    /// Puts an object into an external bucket, which is made if it is missing.
    pub async fn lay_down(&self, bucket: &str, key: &str, bytes: impl Into<Vec<u8>>) {
        self.make_bucket(bucket).await;
        let request = self.s3.put_object().bucket(bucket).key(key).body(bytes.into().into());
        request.send().await.expect("the bucket takes it");
    }

    /// Drops a file in parts.
    pub async fn drop_parts(&self, key: &str, parts: &[&[u8]], notes: &[(&str, &str)]) {
        let bucket = self.output("Bucket");
        let mut begin = self.s3.create_multipart_upload().bucket(bucket).key(key).content_type("text/csv");
        for (name, note) in notes {
            begin = begin.metadata(*name, *note);
        }
        let upload = begin.send().await.expect("the bucket takes it").upload_id.expect("a name");
        let mut whole = CompletedMultipartUpload::builder();
        for (number, part) in (1..).zip(parts) {
            let request = self.s3.upload_part().bucket(bucket).key(key).upload_id(&upload).part_number(number);
            let answer = request.body(part.to_vec().into()).send().await.expect("the bucket takes it");
            whole = whole.parts(CompletedPart::builder().part_number(number).set_e_tag(answer.e_tag).build());
        }
        let complete = self.s3.complete_multipart_upload().bucket(bucket).key(key).upload_id(upload);
        complete.multipart_upload(whole.build()).send().await.expect("the parts are one file");
    }

    /// Deletes the objects with this text in their keys: the file of an upload, or what a job has stored.
    pub async fn delete_objects_of(&self, text: &str) {
        let bucket = self.output("Bucket");
        let listed = self.s3.list_objects_v2().bucket(bucket).send().await.expect("the bucket answers");
        let keys = listed.contents().iter().filter_map(|object| object.key());
        let keys: Vec<&str> = keys.filter(|key| key.contains(text)).collect();
        assert!(!keys.is_empty(), "no key has {text} in it");
        for key in keys {
            self.s3.delete_object().bucket(bucket).key(key).send().await.expect("the bucket answers");
        }
    }

    /// The keys of the objects whose keys begin like this.
    pub async fn keys_below(&self, prefix: &str) -> Vec<String> {
        let pages = self.s3.list_objects_v2().bucket(self.output("Bucket")).prefix(prefix).into_paginator().send();
        let pages = pages.collect::<Result<Vec<_>, _>>().await.expect("the bucket answers");
        pages.iter().flat_map(|page| page.contents()).filter_map(|object| object.key.clone()).collect()
    }

    /// Number of multipart uploads that are neither complete nor aborted.
    pub async fn multiparts(&self) -> usize {
        let listed = self.s3.list_multipart_uploads().bucket(self.output("Bucket")).send().await;
        listed.expect("the bucket answers").uploads().len()
    }

    /// The JSON object of this key, when it is there.
    pub async fn json_object(&self, key: &str) -> Value {
        let started = Instant::now();
        loop {
            let answer = self.s3.get_object().bucket(self.output("Bucket")).key(key).send().await;
            match answer {
                Ok(object) => {
                    let bytes = object.body.collect().await.expect("the object's bytes").into_bytes();
                    return serde_json::from_slice(&bytes).expect("JSON");
                }
                Err(error) => {
                    let missing = error.as_service_error().is_some_and(|error| error.is_no_such_key());
                    assert!(missing, "{}", super::chain(&error));
                }
            }
            assert!(started.elapsed() < PATIENCE, "there is no {key}");
            tokio::time::sleep(Duration::from_millis(50)).await;
        }
    }

    /// The jobs whose metadata has this mark, when there are so many.
    pub async fn jobs_marked(&self, mark: &str, count: usize) -> Vec<Value> {
        let started = Instant::now();
        loop {
            let (_, page) = super::answer(self.get("/api/jobs?limit=100")).await;
            let jobs = page["jobs"].as_array().expect("jobs").clone();
            let marked: Vec<_> = jobs.into_iter().filter(|job| job["metadata"]["mark"] == mark).collect();
            assert!(marked.len() <= count, "more than {count}: {marked:?}");
            if marked.len() == count {
                return marked;
            }
            assert!(started.elapsed() < PATIENCE, "no {count} jobs of {mark}: {marked:?}");
            tokio::time::sleep(Duration::from_millis(50)).await;
        }
    }
}
