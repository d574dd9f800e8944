/**
 * Lists the operations of a document.
 */
import { isObject, type JsonObject } from "@skein/protocol/JsonRpc"
import { quote } from "@skein/protocol/Text"
import * as Result from "effect/Result"
import { InvalidDocument, OpenApiError } from "../../OpenApiError.ts"
import type { Document, Version } from "./pointer.ts"
import { objectAt, pointer, resolve } from "./pointer.ts"

/** An operation of a document, as options receive it. */
export interface Operation {
  /** The `operationId`, if the operation has one. */
  readonly id: string | undefined
  /** The method in upper case: `GET`. Since OpenAPI 3.2 it may be any other, in the spelling of the document. */
  readonly method: string
  /** The path as in the document: `/pets/{petId}`. */
  readonly path: string
  readonly tags: ReadonlyArray<string>
  readonly summary: string | undefined
  readonly description: string | undefined
  readonly deprecated: boolean
  /** The base URL of its requests. */
  readonly baseUrl: string
  /**
   * The alternatives of `security`, each as the names of the schemes that a request needs together. Empty if a request
   * needs none.
   */
  readonly security: ReadonlyArray<ReadonlyArray<string>>
}

/** A parameter with its place in the document. */
export interface Parameter {
  /** The parameter. One that is not usable, since it has no name, is empty. */
  readonly node: JsonObject
  readonly place: string
}

/** An operation with its parts of the document. */
export interface Found {
  readonly operation: Operation
  readonly node: JsonObject
  /**
   * Returns the parameters of the path, then those of the operation, with each reference resolved. Throws
   * `OpenApiError` for a broken reference, which does not matter unless the operation is selected.
   */
  readonly parameters: () => ReadonlyArray<Parameter>
  /** The JSON Pointer of the operation. */
  readonly place: string
}

const methods = ["get", "put", "post", "delete", "options", "head", "patch", "trace"]

/** The operations of a path item: their methods, their nodes, and the rest of their places. */
const nodesOf = (version: Version, item: JsonObject) => {
  const names = version === "3.2" ? [...methods, "query"] : methods
  const more = version === "3.2" && isObject(item["additionalOperations"]) ? item["additionalOperations"] : {}
  return [
    ...names.map((name) => ({ method: name.toUpperCase(), node: item[name], keys: [name] })),
    ...Object.entries(more).map(([method, node]) => ({ method, node, keys: ["additionalOperations", method] }))
  ]
}

const invalid = (message: string, place: string): OpenApiError =>
  new OpenApiError({ reason: new InvalidDocument({ message, place }) })

const textOf = (value: unknown): string | undefined => typeof value === "string" && value !== "" ? value : undefined

const listOf = (value: unknown): ReadonlyArray<unknown> => Array.isArray(value) ? value : []

/** Fills in the defaults of the variables of a server's URL. */
const expand = ({ url, variables }: JsonObject): string =>
  String(url).replaceAll(/\{([^{}]+)\}/g, (whole, name: string) => {
    const variable = isObject(variables) ? variables[name] : undefined
    return isObject(variable) && variable["default"] !== undefined ? String(variable["default"]) : whole
  })

/** Makes the base URL of requests, without a slash at its end. Throws `OpenApiError` if it is not absolute. */
export const toBaseUrl = (text: string, base: URL | undefined, place: string): string => {
  const parsed = Result.try(() => new URL(text, base?.protocol === "file:" ? undefined : base))
  if (Result.isFailure(parsed)) {
    throw invalid(
      `The URL of the server, ${
        quote(text, 300)
      } at ${place}, is not absolute. Give the option baseUrl, or documentUrl`,
      place
    )
  }
  const url = parsed.success
  if (url.protocol !== "https:" && url.protocol !== "http:") {
    throw invalid(`The URL of the server, ${quote(text, 300)} at ${place}, is not an http: or https: URL`, place)
  }
  return `${url.origin}${url.pathname.replace(/\/+$/, "")}`
}

const serverOf = (document: Document, node: JsonObject, place: string): string | undefined => {
  const [server] = listOf(node["servers"])
  return isObject(server) && typeof server["url"] === "string"
    ? toBaseUrl(expand(server), document.url, `${place}/servers/0/url`)
    : undefined
}

const securityOf = (node: JsonObject): Operation["security"] | undefined => {
  const { security } = node
  if (!Array.isArray(security)) return undefined
  const alternatives = security.filter(isObject).map((alternative) => Object.keys(alternative))
  return alternatives.some((names) => names.length === 0) ? [] : alternatives
}

/** Since OpenAPI 3.1, a description beside a reference replaces that of its target ("Reference Object"). */
export const withDescription = (version: Version, reference: unknown, target: unknown): unknown => {
  const description = version !== "3.0" && isObject(reference) && "$ref" in reference && reference["description"]
  return typeof description === "string" && isObject(target) ? { ...target, description } : target
}

/** The parameters of a path and of an operation, where a parameter of the operation replaces its namesake. */
const parametersOf = (
  { root, version }: Document,
  owners: ReadonlyArray<readonly [node: JsonObject, place: string]>
): ReadonlyArray<Parameter> => {
  const found = new Map<string, Parameter>()
  for (const [owner, place] of owners) {
    for (const [at, each] of listOf(owner["parameters"]).entries()) {
      const node = withDescription(version, each, resolve(root, each))
      const reference = isObject(each) ? each["$ref"] : undefined
      const where = typeof reference === "string" ? reference : `${place}/parameters/${at}`
      // One without a name is reported, and not sent.
      if (!isObject(node) || typeof node["name"] !== "string") found.set(where, { node: {}, place: where })
      else found.set(`${String(node["in"])} ${node["name"]}`, { node, place: where })
    }
  }
  return [...found.values()]
}

/** A path item. Members beside its reference replace those of its target. */
const itemOf = (root: JsonObject, node: unknown): JsonObject => {
  const { $ref: _, ...beside } = isObject(node) ? node : {}
  return { ...objectAt(root, node), ...beside }
}

/**
 * Lists the operations in the order of the document. An operation without a usable base URL, or that is not an object, and
 * a path without a slash, or with a broken reference, come as a failure with their place.
 */
export const operationsOf = (
  document: Document,
  baseUrl: string | undefined
): ReadonlyArray<Result.Result<Found, { readonly place: string; readonly error: OpenApiError }>> => {
  const { root, version } = document
  const paths = objectAt(root, root["paths"])
  return Object.entries(paths).filter(([path]) => !path.startsWith("x-")).flatMap(([path, each]) => {
    const place = pointer("paths", path)
    if (!path.startsWith("/")) {
      return [Result.fail({ place, error: invalid(`The path ${quote(path, 300)} must begin with a slash`, place) })]
    }
    const item = Result.try({ try: () => itemOf(root, each), catch: (error) => error as OpenApiError })
    if (Result.isFailure(item)) return [Result.fail({ place, error: item.failure })]
    return nodesOf(version, item.success).flatMap(({ keys, method, node }) => {
      // Some programs write `null` for each method that a path does not have.
      if (node === undefined || node === null) return []
      const at = pointer("paths", path, ...keys)
      if (!isObject(node)) return [Result.fail({ place: at, error: invalid("The operation is not an object", at) })]
      return [
        Result.try({
          try: () => find(document, baseUrl, path, item.success, { method, node, place: at }),
          catch: (error) => ({ place: at, error: error as OpenApiError })
        })
      ]
    })
  })
}

const find = (
  document: Document,
  baseUrl: string | undefined,
  path: string,
  item: JsonObject,
  { method, node, place }: { readonly method: string; readonly node: JsonObject; readonly place: string }
): Found => {
  const { root } = document
  const description = textOf(node["description"]) ?? textOf(item["description"])
  const operation: Operation = {
    id: textOf(node["operationId"]),
    method,
    path,
    tags: listOf(node["tags"]).filter((tag) => typeof tag === "string"),
    summary: textOf(node["summary"]) ?? textOf(item["summary"]),
    description,
    deprecated: node["deprecated"] === true,
    baseUrl: baseUrl ??
      serverOf(document, node, place) ??
      serverOf(document, item, pointer("paths", path)) ??
      serverOf(document, root, "#") ??
      // "If the servers array is empty, the default value is a server with a URL of /" (OpenAPI 3.1, "servers").
      toBaseUrl("/", document.url, "#/servers"),
    security: securityOf(node) ?? securityOf(root) ?? []
  }
  return {
    operation,
    node,
    parameters: () => parametersOf(document, [[item, pointer("paths", path)], [node, place]]),
    place
  }
}
