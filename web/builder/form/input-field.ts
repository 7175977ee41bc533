/** Chooses the field for a value. */
import { html, type View } from "../../base/html.ts";
import type { InputPart } from "./form-part.ts";
import { NameField } from "./name-field.ts";
import { ChoiceField, ChoicesField, NumberField, SwitchField, TextField } from "./scalar-field.ts";
import { TemplateField } from "./template-field.ts";
import { TextsField } from "./texts-field.ts";
import { ValueField } from "./value-field.ts";

export function InputField({ part }: { part: InputPart }): View {
  const Field = FIELDS[part.is];
  return html`<${Field} part=${part} />`;
}

const FIELDS: Readonly<Record<InputPart["is"], (props: { part: InputPart }) => View>> = {
  text: TextField,
  name: NameField,
  template: TemplateField,
  number: NumberField,
  flag: SwitchField,
  only: SwitchField,
  choice: ChoiceField,
  choices: ChoicesField,
  texts: TextsField,
  value: ValueField,
};
