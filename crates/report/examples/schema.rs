//! Prints a JSON Schema as committed in `schema/NAME.schema.json`; without a NAME, the names.

fn main() {
    match std::env::args().nth(1) {
        Some(name) => print!("{}", brunt_report::schema_text(&name).unwrap_or_default()),
        None => brunt_report::SCHEMAS
            .iter()
            .for_each(|(name, _)| println!("{name}")),
    }
}
