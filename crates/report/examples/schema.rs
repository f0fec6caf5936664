//! Prints the JSON Schema of a stored run, as committed in `schema/run.schema.json`.

fn main() {
    print!("{}", brunt_report::schema_text());
}
