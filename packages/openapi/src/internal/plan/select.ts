/**
 * Selects the operations of a document, and plans each of them.
 */
import { isObject, type JsonObject } from "@skein/protocol/JsonRpc"
import { quote } from "@skein/protocol/Text"
import * as Result from "effect/Result"
import { InvalidDocument, LimitExceeded, OpenApiError } from "../../OpenApiError.ts"
import { addressOf, checkAddress } from "./address.ts"
import type { Document } from "../document/pointer.ts"
import { type Found, type Operation, operationsOf, toBaseUrl } from "../document/operations.ts"
import { nameOf, Names, toName } from "../document/names.ts"
import { type BothSchemas, planOf, type PlanOptions } from "./plan.ts"
import { Reporter } from "./coverage.ts"
import type { Definition } from "./register.ts"
import { Schemas } from "../schema/convert.ts"

/** The kind of definition that an operation becomes, or none. */
export type Route = "tool" | "resource" | "template" | "exclude"

/** A choice of operations: those with one of the tags or ids, or those for which a function returns `true`. */
export type Selection =
  | { readonly tags?: ReadonlyArray<string> | undefined; readonly ids?: ReadonlyArray<string> | undefined }
  | ((operation: Operation) => boolean)

/** An operation that is left out, or a part of the document that has no effect. */
export interface LeftOut {
  /** Whether it is an operation, or a part of the document without which operations are registered. */
  readonly kind: "operation" | "part"
  /** The JSON Pointer of the operation or of the part. */
  readonly place: string
  readonly message: string
}

/** The choices of the author, with their defaults. */
export interface SelectOptions extends PlanOptions {
  readonly include?: Selection | undefined
  readonly exclude?: Selection | undefined
  readonly name?: ((operation: Operation) => string | undefined) | undefined
  readonly routeMap?: ((operation: Operation) => Route) | undefined
  readonly uriPrefix?: string | undefined
  readonly baseUrl: string | undefined
  readonly maxOperations: number
  /** Whether an operation that cannot be called fails the document. */
  readonly isStrict: boolean
}

/** The definitions of a document. */
export interface Selected {
  readonly definitions: ReadonlyArray<Definition>
  readonly leftOut: ReadonlyArray<LeftOut>
}

const matches = (selection: Selection, operation: Operation): boolean => {
  if (typeof selection === "function") return selection(operation)
  const { ids = [], tags = [] } = selection
  return (operation.id !== undefined && ids.includes(operation.id)) || operation.tags.some((tag) => tags.includes(tag))
}

const isSelected = ({ exclude, include }: SelectOptions, operation: Operation): boolean =>
  (include === undefined || matches(include, operation)) && !(exclude !== undefined && matches(exclude, operation))

const prefixOf = (root: JsonObject, prefix: string | undefined): string => {
  if (prefix !== undefined) return prefix.replace(/\/+$/, "")
  const title = isObject(root["info"]) ? String(root["info"]["title"] ?? "") : ""
  return `openapi://${toName(title.toLowerCase().replaceAll(/[^a-z0-9]+/g, "-"), "api").replaceAll(/^-|-$/g, "")}`
}

/** The base URL of the options, checked. Throws `OpenApiError`. */
const baseUrlOf = (baseUrl: string | undefined): string | undefined => {
  if (baseUrl === undefined) return undefined
  if (/^https?:\/\//i.test(baseUrl) && URL.canParse(baseUrl)) return toBaseUrl(baseUrl, undefined, "the option baseUrl")
  throw new OpenApiError({
    reason: new InvalidDocument({
      message: `The option baseUrl, ${quote(baseUrl, 300)}, is not an absolute http: or https: URL`,
      place: "#/servers"
    })
  })
}

const tooMany = (maxOperations: number): OpenApiError =>
  new OpenApiError({
    reason: new LimitExceeded({
      message:
        `The document has more than maxOperations (${maxOperations}) operations. Choose some with include, exclude or ` +
        "routeMap, or raise the option. Models choose badly among hundreds of tools",
      limit: "maxOperations"
    })
  })

/** Selects and plans the operations of a document. Fails with `OpenApiError`. */
export const select = (document: Document, options: SelectOptions): Result.Result<Selected, OpenApiError> => {
  const { isStrict, maxOperations, name, routeMap } = options
  const { root, version } = document
  const definitions: Array<Definition> = []
  const leftOut: Array<LeftOut> = []
  const schemas: BothSchemas = {
    input: new Schemas(root, "arguments", version),
    output: new Schemas(root, "results", version)
  }
  const prefix = prefixOf(root, options.uriPrefix)
  const reporter = new Reporter(document)
  const names = new Names()
  const refuse = (place: string, error: unknown): void => {
    if (isStrict || !(error instanceof OpenApiError)) throw error
    leftOut.push({ kind: "operation", place, message: error.message })
  }
  const add = (found: Found): void => {
    const { operation, place } = found
    const as = routeMap?.(operation) ?? "tool"
    if (as === "exclude") return
    if (definitions.length + leftOut.length >= maxOperations) throw tooMany(maxOperations)
    try {
      const plan = planOf(root, schemas, found, options)
      const address = addressOf(prefix, plan)
      if (as !== "tool") checkAddress(as, address, plan, place)
      const wanted = name?.(operation)
      const taken = names.take(wanted === undefined ? nameOf(operation) : toName(wanted, "tool"))
      definitions.push({ as, name: taken, plan, address })
      reporter.addOperation(found)
    } catch (error) {
      refuse(place, error)
    }
  }
  return Result.try({
    try: () => {
      for (const found of operationsOf(document, baseUrlOf(options.baseUrl))) {
        if (Result.isFailure(found)) refuse(found.failure.place, found.failure.error)
        else if (isSelected(options, found.success.operation)) add(found.success)
      }
      return {
        definitions,
        leftOut: [...leftOut, ...reporter.found.map((each) => ({ kind: "part" as const, ...each }))]
      }
    },
    catch: (error) => {
      if (error instanceof OpenApiError) return error
      throw error
    }
  })
}
