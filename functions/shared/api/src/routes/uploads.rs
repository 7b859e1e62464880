//! Routes of uploads.

use super::{Answer, Json, Operation, Parameter, RequestBody, Route};
use crate::preview::PreviewView;
use crate::problem::ProblemCode::*;
use crate::request::{AnnounceRequest, PreviewRequest, SignPartsRequest};
use crate::upload::UploadView;

routes!(
    Route {
        operation: CreateUpload,
        method: "POST",
        path: "/api/uploads",
        function: "upload",
        summary: "Store a small file, or announce a big one",
        description: "Send a small file (at most 5 MB) as the body, with its own content type. For a bigger file send \
                      an announcement as `application/json`; the answer has one presigned request for the whole file, or \
                      one for each part. Any content type is accepted for a file, except `application/json` and forms. A \
                      text type needs UTF-8; send other bytes as `application/octet-stream`.",
        parameters: &[Parameter {
            name: "fileName",
            place: "query",
            required: false,
            description: "The name of the file in the body, at most 255 bytes without control characters. An empty name counts \
                      as left out. Ignored with an announcement, which has its own `fileName`.",
            schema: r#"{"type": "string"}"#,
        }],
        body: Some(RequestBody { required: true, json: Json::of::<AnnounceRequest>(), or_file: true }),
        answers: &[Answer {
            status: 201,
            description: "The file is stored, or announced: then send its bytes with the presigned requests.",
            json: &[Json::of::<UploadView>()],
            headers: &[],
        }],
        problems: &[(422, BodyAltered), (429, TooManyUploads),],
        guarded: true,
    },
    Route {
        operation: CompleteUpload,
        method: "POST",
        path: "/api/uploads/{fileGuid}/complete",
        function: "upload",
        summary: "Join the parts of a file",
        description: "Required after the parts of a big file are sent. Completing an upload again changes nothing.",
        parameters: &[],
        body: None,
        answers: &[Answer {
            status: 200,
            description: "The file is stored.",
            json: &[Json::of::<UploadView>()],
            headers: &[],
        }],
        problems: &[(404, NotFound), (409, UploadIncomplete), (409, UploadSizeMismatch), (409, Changed)],
        guarded: true,
    },
    Route {
        operation: ShowUpload,
        method: "GET",
        path: "/api/uploads/{fileGuid}",
        function: "upload",
        summary: "Show an upload",
        description: "An upload that was sent with a presigned request is `ready` as soon as its bytes are stored. \
                      `bytesStored` and `partsStored` come from the bucket, so they are what is really stored.",
        parameters: &[],
        body: None,
        answers: &[Answer { status: 200, description: "The upload.", json: &[Json::of::<UploadView>()], headers: &[] }],
        problems: &[(404, NotFound)],
        guarded: true,
    },
    Route {
        operation: SignParts,
        method: "POST",
        path: "/api/uploads/{fileGuid}/parts",
        function: "upload",
        summary: "Sign the missing parts again",
        description: "To resume an upload, or to go on after the signatures have expired, until the upload itself \
                      expires. `parts` has the parts that the bucket does not have, at most 1,000, and `nextPart` where to \
                      go on. If `parts` is empty, all parts are stored: complete the upload. An upload by a single request \
                      gets that request in `upload`.",
        parameters: &[],
        body: Some(RequestBody { required: false, json: Json::of::<SignPartsRequest>(), or_file: false }),
        answers: &[Answer {
            status: 200,
            description: "The upload, with new presigned requests.",
            json: &[Json::of::<UploadView>()],
            headers: &[],
        }],
        problems: &[(404, NotFound), (409, UploadReady), (429, TooManyUploads),],
        guarded: true,
    },
    Route {
        operation: AbortUpload,
        method: "DELETE",
        path: "/api/uploads/{fileGuid}",
        function: "upload",
        summary: "Abort an upload",
        description: "Deletes what is stored of an upload that is not ready. It no longer counts as outstanding. Presigned \
                      requests of its parts are refused from then on.",
        parameters: &[],
        body: None,
        answers: &[Answer { status: 204, description: "The upload does not exist any more.", json: &[], headers: &[] }],
        problems: &[(404, NotFound), (409, UploadReady)],
        guarded: true,
    },
    Route {
        operation: PreviewUpload,
        method: "POST",
        path: "/api/uploads/{fileGuid}/preview",
        function: "create-job",
        summary: "Show the first rows of a file",
        description: "Reads the beginning of a complete upload as a job with these params would: how it is packed, its \
                      format, charset, delimiter and columns, and its first rows. No job is created. Texts are cut off \
                      behind 1,000 characters, and the answer has at most 256 KiB of columns and rows.",
        parameters: &[],
        body: Some(RequestBody { required: false, json: Json::of::<PreviewRequest>(), or_file: false }),
        answers: &[Answer {
            status: 200,
            description: "The beginning of the file.",
            json: &[Json::of::<PreviewView>()],
            headers: &[],
        }],
        problems: &[
            (404, NotFound),
            (409, UploadIncomplete),
            (409, Changed),
            (422, InvalidParams),
            (422, UnknownJobType),
            (422, UploadSizeMismatch),
            (422, UploadChanged),
            (422, UnreadableFile),
        ],
        guarded: true,
    },
);
