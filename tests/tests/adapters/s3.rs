use std::collections::BTreeMap;
use std::ops::Deref;
use std::time::Duration;

use aws_config::SdkConfig;
use bytes::Bytes;
use hyper_util::rt::{TokioExecutor, TokioIo};
use hyper_util::server::conn::auto::Builder;
use rowmill_aws::adapters::s3::S3Objects;
use rowmill_aws::sdk::clients::Clients;
use rowmill_core::ports::{DirectTransfers, Objects, PortError, PresignedRequest};
use rowmill_testing::contract::{self, Client, Outsider};
use s3s::auth::SimpleAuth;
use s3s::service::S3ServiceBuilder;
use s3s_fs::FileSystem;
use tempfile::TempDir;

use crate::s3_server::ConditionalFileSystem;
use crate::{config, https_client};

/// S3 in a temporary folder, on a loopback port, with an empty bucket.
struct Server {
    objects: S3Objects,
    client: aws_sdk_s3::Client,
    http: reqwest::Client,
    _folder: TempDir,
}

impl Server {
    async fn start() -> Self {
        let folder = tempfile::tempdir().unwrap();
        let mut service = S3ServiceBuilder::new(ConditionalFileSystem::new(FileSystem::new(folder.path()).unwrap()));
        service.set_auth(SimpleAuth::from_single("test", "test"));
        let service = service.build();
        let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
        let endpoint = format!("http://{}", listener.local_addr().unwrap());
        tokio::spawn(async move {
            while let Ok((stream, _)) = listener.accept().await {
                let service = service.clone();
                tokio::spawn(async move {
                    Builder::new(TokioExecutor::new()).serve_connection(TokioIo::new(stream), service).await.ok();
                });
            }
        });
        let config: SdkConfig = config(&endpoint, https_client()).await;
        let client = Clients::new(config).s3();
        client.create_bucket().bucket("files").send().await.unwrap();
        rustls::crypto::ring::default_provider().install_default().ok();
        let objects = S3Objects::new(client.clone(), "files".to_owned());
        Self { objects, client, http: reqwest::Client::new(), _folder: folder }
    }
}

impl Deref for Server {
    type Target = S3Objects;

    fn deref(&self) -> &S3Objects {
        &self.objects
    }
}

impl Outsider for Server {
    async fn store(&self, key: &str, content_type: &str, metadata: BTreeMap<String, String>, bytes: Bytes) {
        let request = self.client.put_object().bucket("files").key(key).content_type(content_type);
        let request = request.set_metadata(Some(metadata.into_iter().collect()));
        request.body(bytes.into()).send().await.unwrap();
    }
}

impl Client for Server {
    async fn send(&self, request: &PresignedRequest, body: Bytes) -> bool {
        let mut sent = self.http.request(request.method.parse().unwrap(), &request.url);
        for (name, value) in &request.headers {
            sent = sent.header(name, value);
        }
        let answer = sent.body(body).send().await.unwrap();
        let taken = answer.status().is_success();
        if !taken {
            println!("{}: {}", answer.status(), answer.text().await.unwrap());
        }
        taken
    }

    async fn get(&self, request: &PresignedRequest) -> Option<(Bytes, String)> {
        let answer = self.http.get(&request.url).send().await.unwrap();
        let disposition = answer.headers().get("content-disposition")?.to_str().ok()?.to_owned();
        let name = disposition.strip_prefix("attachment; filename=\"")?.strip_suffix('"')?.to_owned();
        Some((answer.bytes().await.ok()?, name))
    }
}

#[tokio::test]
async fn the_objects_keep_the_contract() {
    contract::objects(Server::start).await;
}

#[tokio::test]
async fn the_direct_transfers_keep_the_contract() {
    contract::direct_transfers(Server::start).await;
}

const HOUR: Duration = Duration::from_secs(3600);

#[tokio::test]
async fn length_type_and_checksum_are_part_of_the_signature() {
    let server = Server::start().await;
    let request = server.presign_put("uploads/a", "text/csv", 5, Some([7; 32]), HOUR).await.unwrap();
    let signed = request.url.split("X-Amz-SignedHeaders=").nth(1).unwrap().split('&').next().unwrap();
    let query = request.url.to_ascii_lowercase();
    for name in ["content-length", "content-type", "if-none-match"] {
        assert!(signed.contains(name), "{name} is not among {signed}");
    }
    assert!(signed.contains("x-amz-checksum-sha256") || query.contains("x-amz-checksum-sha256="), "{}", request.url);
    assert!(!query.contains("crc32"), "a checksum of an unknown body: {}", request.url);
    let part = server.presign_part("uploads/a", "m", 1, 5, HOUR).await.unwrap();
    assert!(part.url.split("X-Amz-SignedHeaders=").nth(1).unwrap().contains("content-length"));
    assert!(!part.url.to_ascii_lowercase().contains("crc32"), "{}", part.url);
}

#[tokio::test]
async fn a_request_signed_for_one_object_stores_no_other() {
    let server = Server::start().await;
    let signed = server.presign_put("uploads/a", "text/csv", 5, None, HOUR).await.unwrap();
    let with = |name: &str, value: &str| {
        let mut request = signed.clone();
        for (header, old) in &mut request.headers {
            if header.eq_ignore_ascii_case(name) {
                value.clone_into(old);
            }
        }
        request
    };
    assert!(!server.send(&with("content-type", "text/html"), Bytes::from_static(b"hello")).await);
    assert!(!server.send(&with("content-length", "7"), Bytes::from_static(b"goodbye")).await);
    let mut elsewhere = signed.clone();
    elsewhere.url = elsewhere.url.replace("uploads/a", "uploads/b");
    assert!(!server.send(&elsewhere, Bytes::from_static(b"hello")).await);
    assert!(matches!(server.head("uploads/a").await, Err(PortError::NotFound)));
    assert!(server.send(&signed, Bytes::from_static(b"hello")).await);
}

#[tokio::test]
async fn a_missing_bucket_is_unavailable() {
    let server = Server::start().await;
    let elsewhere =
        S3Objects::new(Clients::new(config("http://127.0.0.1:9", https_client()).await).s3(), "files".to_owned());
    drop(server);
    assert!(matches!(elsewhere.read("uploads/a").await, Err(PortError::Unavailable { .. })));
}
