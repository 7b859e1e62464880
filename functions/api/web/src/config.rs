//! The stack as the page must know it.

use rowmill_api::client_config::SignIn;

use crate::limits::PageSettings;

/// Sign-in of the page; `None` if the API is open, or if the issuer knows no client for the page.
///
/// The page asks for all scopes of the API. An issuer grants those that the person may have.
pub fn sign_in(issuer: &str, api_scopes: [&str; 2], page: &PageSettings) -> Option<SignIn> {
    if issuer.is_empty() || page.client_id.is_empty() {
        return None;
    }
    let mut scopes = vec!["openid"];
    for scope in api_scopes {
        if !scope.is_empty() && !scopes.contains(&scope) {
            scopes.push(scope);
        }
    }
    Some(SignIn {
        issuer: issuer.to_owned(),
        client_id: page.client_id.clone(),
        scope: scopes.join(" "),
        audience: page.audience.clone(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn people_sign_in_where_there_are_an_issuer_and_a_client() {
        let issuer = "https://issuer.example";
        let mut page = PageSettings { audience: "rowmill".to_owned(), ..PageSettings::default() };
        assert_eq!(sign_in(issuer, ["", ""], &page), None);
        page.client_id = "page".to_owned();
        assert_eq!(sign_in(issuer, ["", ""], &page).unwrap().scope, "openid");
        assert_eq!(sign_in(issuer, ["rw", "rw"], &page).unwrap().scope, "openid rw");
        assert_eq!(sign_in("", ["rw", "rw"], &page), None);
    }
}
