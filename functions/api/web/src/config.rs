//! What the page must know of the stack.

use rowmill_api::client_config::SignIn;
use rowmill_aws::http::Access;

use crate::limits::PageSettings;

/// How people sign in; `None` if the API is open, or if the issuer knows no client for the page.
///
/// The page asks for all scopes of the API. An issuer grants those that the person may have.
pub fn sign_in(access: &Access, page: &PageSettings) -> Option<SignIn> {
    if access.issuer.is_empty() || page.client_id.is_empty() {
        return None;
    }
    let mut scopes = vec!["openid"];
    for scope in [access.read_scope.as_str(), access.write_scope.as_str()] {
        if !scope.is_empty() && !scopes.contains(&scope) {
            scopes.push(scope);
        }
    }
    Some(SignIn {
        issuer: access.issuer.clone(),
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
        let mut access = Access { issuer: "https://issuer.example".to_owned(), ..Access::default() };
        let mut page = PageSettings { audience: "rowmill".to_owned(), ..PageSettings::default() };
        assert_eq!(sign_in(&access, &page), None);
        page.client_id = "page".to_owned();
        assert_eq!(sign_in(&access, &page).unwrap().scope, "openid");
        (access.read_scope, access.write_scope) = ("rw".to_owned(), "rw".to_owned());
        assert_eq!(sign_in(&access, &page).unwrap().scope, "openid rw");
        access.issuer.clear();
        assert_eq!(sign_in(&access, &page), None);
    }
}
