/** Validates values by the official schemas, with one Ajv per document. Each definition is compiled on first use. */
import { Ajv, type ValidateFunction } from "ajv"
import { Ajv2020 } from "ajv/dist/2020.js"
import * as Formats from "ajv-formats"
import type * as Spec from "./Spec.ts"

const options = { strict: false, allErrors: false, inlineRefs: false } as const

const instances = new WeakMap<Spec.Document, Ajv | Ajv2020>()
const compiled = new WeakMap<Spec.Document, Map<string, ValidateFunction>>()

const instance = (document: Spec.Document): Ajv | Ajv2020 => {
  const known = instances.get(document)
  if (known !== undefined) return known
  const ajv = document.dialect === "draft-07" ? new Ajv(options) : new Ajv2020(options)
  Formats.default.default(ajv)
  const container = document.prefix.slice(2, -1)
  ajv.addSchema({ $id: `oracle:${document.name}`, [container]: document.definitions })
  instances.set(document, ajv)
  return ajv
}

/** Returns the first problem of a value by an official definition, or `undefined` where the definition accepts it. */
export const refusal = (document: Spec.Document, definition: string, value: unknown): string | undefined => {
  let known = compiled.get(document)
  if (known === undefined) {
    known = new Map()
    compiled.set(document, known)
  }
  let validate = known.get(definition)
  if (validate === undefined) {
    validate = instance(document).compile({ $ref: `oracle:${document.name}${document.prefix}${definition}` })
    known.set(definition, validate)
  }
  if (validate(value)) return undefined
  const error = validate.errors?.[0]
  return error === undefined
    ? "refused"
    : `${error.instancePath === "" ? "/" : error.instancePath} ${error.message ?? ""} (${error.schemaPath})`
}
