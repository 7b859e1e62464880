//! The page and its assets. They are for browsers, so the OpenAPI document leaves them out.

use super::{Operation, Route};

routes! {
    ShowPage = "GET" "/" by "web" {
        summary: "Show the page",
        description: "The page that does everything that this API can do.",
        guarded: false,
    }
    ShowAsset = "GET" "/assets/{proxy+}" by "web" {
        summary: "Show an asset of the page",
        description: "Scripts and styles, under a path that changes with their content.",
        guarded: false,
    }
}
