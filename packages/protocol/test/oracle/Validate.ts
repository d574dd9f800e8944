/** The official schemas as validators: one Ajv per document, each definition compiled once, on first use. */
import { Ajv, type ValidateFunction } from "ajv"
import { Ajv2020 } from "ajv/dist/2020.js"
import * as Formats from "ajv-formats"
import * as Spec from "./Spec.ts"

const options = { strict: false, allErrors: false, inlineRefs: false } as const

const instances = new Map<string, Ajv | Ajv2020>()
const compiled = new Map<string, ValidateFunction>()

const instance = (document: Spec.Document): Ajv | Ajv2020 => {
  const known = instances.get(document.name)
  if (known !== undefined) return known
  const ajv = document.dialect === "draft-07" ? new Ajv(options) : new Ajv2020(options)
  Formats.default.default(ajv)
  const container = document.prefix.slice(2, -1)
  ajv.addSchema({ $id: `oracle:${document.name}`, [container]: document.definitions })
  instances.set(document.name, ajv)
  return ajv
}

/** What the official schema says against a value of this definition; `undefined` where it accepts it. */
export const refusal = (document: Spec.Document, definition: string, value: unknown): string | undefined => {
  const key = `oracle:${document.name}${document.prefix}${definition}`
  let validate = compiled.get(key)
  if (validate === undefined) {
    validate = instance(document).compile({ $ref: key })
    compiled.set(key, validate)
  }
  if (validate(value)) return undefined
  const error = validate.errors?.[0]
  return error === undefined
    ? "refused"
    : `${error.instancePath === "" ? "/" : error.instancePath} ${error.message ?? ""} (${error.schemaPath})`
}
