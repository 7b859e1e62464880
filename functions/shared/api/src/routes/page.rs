//! The page and its assets. They are for browsers, so the OpenAPI document leaves them out.

use super::{Operation, Route};

/// What the two have in common.
const PAGE: Route = Route {
    operation: Operation::ShowPage,
    method: "GET",
    path: "/",
    function: "web",
    summary: "Show the page",
    description: "The page that does everything that this API can do.",
    parameters: &[],
    body: None,
    answers: &[],
    problems: &[],
    guarded: false,
};

routes!(
    Route { operation: ShowPage, method: "GET", path: "/", ..PAGE },
    Route {
        operation: ShowAsset,
        method: "GET",
        path: "/assets/{proxy+}",
        summary: "Show an asset of the page",
        description: "Scripts and styles, under a path that changes with their content.",
        ..PAGE
    },
);
