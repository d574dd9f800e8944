/**
 * Forms that a server asks the user to fill in, as JSON Schema.
 */

/** Members that each field of a form has. */
interface Field {
  readonly title?: string
  readonly description?: string
}

/** A text field. */
export interface StringField extends Field {
  readonly type: "string"
  readonly minLength?: number
  readonly maxLength?: number
  readonly format?: "email" | "uri" | "date" | "date-time"
  readonly default?: string
}

/** A number field. */
export interface NumberField extends Field {
  readonly type: "number" | "integer"
  readonly minimum?: number
  readonly maximum?: number
  readonly default?: number
}

/** A checkbox. */
export interface BooleanField extends Field {
  readonly type: "boolean"
  readonly default?: boolean
}

/** A choice of one value. The values are shown as they are, or by the titles of `enumNames`, in the same order. */
export interface ChoiceField extends Field {
  readonly type: "string"
  readonly enum: ReadonlyArray<string>
  readonly enumNames?: ReadonlyArray<string>
  readonly default?: string
}

/** A value of a choice, and its title. */
export interface TitledValue {
  readonly const: string
  readonly title: string
}

/** A choice of one value with titles. */
export interface TitledChoiceField extends Field {
  readonly type: "string"
  readonly oneOf: ReadonlyArray<TitledValue>
  readonly default?: string
}

/** A choice of several values, whose titles are in `anyOf`. */
export interface MultipleChoiceField extends Field {
  readonly type: "array"
  readonly items:
    | { readonly type: "string"; readonly enum: ReadonlyArray<string> }
    | { readonly anyOf: ReadonlyArray<TitledValue> }
  readonly minItems?: number
  readonly maxItems?: number
  readonly default?: ReadonlyArray<string>
}

/** A field of a form. */
export type FormField =
  | StringField
  | NumberField
  | BooleanField
  | ChoiceField
  | TitledChoiceField
  | MultipleChoiceField

/** A form: a JSON Schema of an object whose properties are fields. */
export interface RequestedSchema {
  readonly $schema?: string
  readonly type: "object"
  readonly properties: { readonly [field: string]: FormField }
  readonly required?: ReadonlyArray<string>
}
