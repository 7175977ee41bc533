/** Field of the form that was focused last. A value of the payload can be inserted into it. */
export interface InsertTarget {
  /** Name of the field for the user, such as "Subject". */
  label: string;
  /** Content of the field: a text with templates, or a path into the payload. */
  kind: "template" | "path";
  insert(text: string): void;
}
