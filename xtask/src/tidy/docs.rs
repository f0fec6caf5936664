//! Doc comments: each file says what it is for, each public item what it means. The compiler's own
//! lint covers only what a library exports; this one also covers the binary.

use syn::{Attribute, Fields, ImplItem, Item, TraitItem, Visibility};

use super::Finding;
use super::source::Source;

pub(super) fn check(source: &Source) -> Vec<Finding> {
    let mut findings = Vec::new();
    if !has_docs(&source.syntax.attrs) {
        findings.push(Finding::new(
            &source.path,
            1,
            "says nowhere what the file is for: begin it with a `//!` line",
        ));
    }
    let mut undocumented = Vec::new();
    check_items(&source.syntax.items, &mut undocumented);
    for ident in undocumented {
        let line = ident.span().start().line;
        if !source.is_test(line) {
            findings.push(Finding::new(
                &source.path,
                line,
                format!("`{ident}` is public and has no doc comment: say what it means"),
            ));
        }
    }
    findings
}

fn has_docs(attributes: &[Attribute]) -> bool {
    attributes.iter().any(|a| a.path().is_ident("doc"))
}

fn is_public(visibility: &Visibility) -> bool {
    matches!(visibility, Visibility::Public(_))
}

/// Collects the names of public items without docs.
fn check_items<'a>(items: &'a [Item], undocumented: &mut Vec<&'a syn::Ident>) {
    for item in items {
        let (visibility, attributes, ident) = match item {
            Item::Const(item) => (&item.vis, &item.attrs, &item.ident),
            Item::Enum(item) => {
                if is_public(&item.vis) {
                    for variant in &item.variants {
                        note(&variant.attrs, &variant.ident, undocumented);
                        check_fields(&variant.fields, true, undocumented);
                    }
                }
                (&item.vis, &item.attrs, &item.ident)
            }
            Item::Fn(item) => (&item.vis, &item.attrs, &item.sig.ident),
            Item::Impl(item) => {
                if item.trait_.is_none() {
                    check_impl(&item.items, undocumented);
                }
                continue;
            }
            Item::Mod(item) => {
                let Some((_, items)) = &item.content else {
                    continue; // Its own file says it.
                };
                check_items(items, undocumented);
                (&item.vis, &item.attrs, &item.ident)
            }
            Item::Static(item) => (&item.vis, &item.attrs, &item.ident),
            Item::Struct(item) => {
                if is_public(&item.vis) {
                    check_fields(&item.fields, false, undocumented);
                }
                (&item.vis, &item.attrs, &item.ident)
            }
            Item::Trait(item) => {
                if is_public(&item.vis) {
                    check_trait(&item.items, undocumented);
                }
                (&item.vis, &item.attrs, &item.ident)
            }
            Item::Type(item) => (&item.vis, &item.attrs, &item.ident),
            Item::Union(item) => (&item.vis, &item.attrs, &item.ident),
            _ => continue,
        };
        if is_public(visibility) {
            note(attributes, ident, undocumented);
        }
    }
}

fn note<'a>(
    attributes: &[Attribute],
    ident: &'a syn::Ident,
    undocumented: &mut Vec<&'a syn::Ident>,
) {
    if !has_docs(attributes) {
        undocumented.push(ident);
    }
}

/// Named fields; those of an enum's variant are as public as the enum.
fn check_fields<'a>(fields: &'a Fields, of_variant: bool, undocumented: &mut Vec<&'a syn::Ident>) {
    for field in fields {
        if let Some(ident) = &field.ident
            && (of_variant || is_public(&field.vis))
        {
            note(&field.attrs, ident, undocumented);
        }
    }
}

fn check_impl<'a>(items: &'a [ImplItem], undocumented: &mut Vec<&'a syn::Ident>) {
    for item in items {
        let (visibility, attributes, ident) = match item {
            ImplItem::Const(item) => (&item.vis, &item.attrs, &item.ident),
            ImplItem::Fn(item) => (&item.vis, &item.attrs, &item.sig.ident),
            _ => continue,
        };
        if is_public(visibility) {
            note(attributes, ident, undocumented);
        }
    }
}

fn check_trait<'a>(items: &'a [TraitItem], undocumented: &mut Vec<&'a syn::Ident>) {
    for item in items {
        match item {
            TraitItem::Const(item) => note(&item.attrs, &item.ident, undocumented),
            TraitItem::Fn(item) => note(&item.attrs, &item.sig.ident, undocumented),
            TraitItem::Type(item) => note(&item.attrs, &item.ident, undocumented),
            _ => {}
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn lines(text: &str) -> Vec<usize> {
        let source = Source::parse("crates/load/src/plan.rs", text).unwrap();
        check(&source).iter().map(|finding| finding.line).collect()
    }

    #[test]
    fn documented_and_private_items_pass() {
        let good = "\
//! A file.

/// A thing.
pub struct A {
    /// A field.
    pub a: u32,
    b: u32,
}
pub(crate) struct B {
    pub(crate) c: u32,
}
pub struct C(pub u32); //
impl std::fmt::Debug for A {
    fn fmt(&self) {}
}
pub mod outlined;
fn f() {}
#[cfg(test)]
mod tests {
    pub fn helper() {}
}
";
        let good = good.replace("pub struct C", "/// C.\npub struct C");
        assert!(lines(&good).is_empty());
    }

    #[test]
    fn each_kind_of_public_item_is_seen() {
        let bad = "\
//! A file.
pub struct A {
    pub a: u32,
}
pub enum B {
    C { d: u32 },
}
pub trait E {
    fn f(&self);
}
impl A {
    pub fn g(&self) {}
    pub const H: u32 = 1;
}
pub type I = u32;
pub static J: u32 = 1;
pub mod k {
    pub const L: u32 = 1;
}
";
        let mut found = lines(bad);
        found.sort_unstable();
        assert_eq!(found, [2, 3, 5, 6, 6, 8, 9, 12, 13, 15, 16, 17, 18]);
    }

    #[test]
    fn a_file_says_what_it_is_for() {
        assert!(lines("//! A file.\n").is_empty());
        assert_eq!(lines("// A file.\nfn f() {}\n"), [1]);
    }
}
