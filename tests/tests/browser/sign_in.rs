//! Signing in, and two owners side by side.

use acceptance::local_stack::{AUDIENCE, Issuer, LocalStack, WRITE_SCOPE, options};
use serde_json::{Value, json};

use crate::browser::{Chromium, Tab, chromium, quoted};
use crate::stack::{data, folder, page, runtime};

/// A person signs in at the issuer's own page.
async fn signs_in(tab: &Tab, name: &str) {
    tab.press("Sign in").await;
    tab.until("document.querySelector('input[name=sub]')").await;
    let name_it = format!("document.querySelector('input[name=sub]').value = {}, null", quoted(name));
    let _: Value = tab.value(&name_it).await;
    let _: Value = tab.value("document.querySelector('form').requestSubmit(), null").await;
    tab.until(&format!("document.querySelector('.person')?.textContent === {}", quoted(name))).await;
}

/// Uploads the file and runs a job over it.
async fn runs_a_job(tab: &Tab) {
    tab.press("New job").await;
    tab.choose("Type", "validate").await;
    tab.choose_files(&[&data("unicode.csv")]).await;
    tab.completes_job().await;
}

/// The jobs in the list.
const LISTED: &str =
    "[...document.querySelectorAll('job-list .name')].map(one => one.getAttribute('href').split('/').at(-1))";

#[test]
fn two_owners_sign_in_side_by_side_and_see_their_own_jobs_only() {
    let Some(executable) = chromium("two_owners_sign_in_side_by_side_and_see_their_own_jobs_only") else { return };
    runtime().block_on(async {
        let folder = folder().join("sign-in");
        let issuer = Issuer::start(&folder).await;
        let parameters = [
            ("JwtIssuer", issuer.url()),
            ("JwtAudience", AUDIENCE),
            ("PageClientId", AUDIENCE),
            ("ReadScope", ""),
            ("WriteScope", ""),
        ];
        assert_ne!(WRITE_SCOPE, "", "the issuer's ID tokens have no scopes, so the stack asks for none");
        let stack = LocalStack::up(&options(folder.join("stack"), &parameters)).await;
        let browsers = (Chromium::launch(&executable).await, Chromium::launch(&executable).await);
        let (alice, bob) = (browsers.0.tab(&page(&stack)).await, browsers.1.tab(&page(&stack)).await);
        alice.sees("Sign in to see your jobs.").await;
        signs_in(&alice, "alice").await;
        signs_in(&bob, "bob").await;
        let address: String = alice.value("location.href").await;
        assert!(!address.contains("code=") && !address.contains("state="), "{address}");

        tokio::join!(runs_a_job(&alice), runs_a_job(&bob));
        let job_of_alice: String = alice.value("location.hash.split('/').at(-1)").await;
        for tab in [&alice, &bob] {
            tab.press("Jobs").await;
            tab.until("document.querySelector('job-list .name')").await;
        }
        let (of_alice, of_bob): (Vec<String>, Vec<String>) = (alice.value(LISTED).await, bob.value(LISTED).await);
        assert_eq!(of_alice, std::slice::from_ref(&job_of_alice));
        assert!(of_bob.len() == 1 && of_bob != of_alice, "{of_bob:?}");
        let _: Value = bob.value(&format!("location.hash = '#/jobs/{job_of_alice}', null")).await;
        bob.sees("There is no job").await;

        // The sign-in outlives the page, and nothing of it outlives the sign-out.
        alice.go(&format!("{}?again", page(&stack))).await;
        alice.until("document.querySelector('job-list .name')").await;
        alice.press("Sign out").await;
        alice.sees("You are signed out.").await;
        let kept: Value = alice.value("({...sessionStorage})").await;
        assert_eq!(kept, json!({}));
        alice.go(&page(&stack)).await;
        alice.sees("Sign in to see your jobs.").await;
    });
}
