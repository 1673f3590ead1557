"""DISSP's query files: networks in XML, in both directions.

Comes in: the text of an XML file, or a `Spec` to be written as one.
Goes out: a `Spec`, the same value that a YAML file gives, or XML text. A fault names the file, the line, the element
and what is allowed there; what XML has no words for is refused by name.

`elements` parses safely, `operator_types` and `parameters` know what may be said, `query` reads one query, `content`
says what it means as a network, `several` puts queries together, `reader` does all of that, `as_xml` writes.
"""
