/**
 * Makes the references of a document local: adds the documents that they lead to, and names each target by its place.
 *
 * A document that cannot be loaded is a fault of the references to it alone. They keep their URL, and `find` throws the
 * fault where an operation needs one of them.
 */
import { isObject, type JsonObject } from "@skein/protocol/JsonRpc"
import * as Effect from "effect/Effect"
import * as Result from "effect/Result"
import type { OpenApiError } from "../../OpenApiError.ts"
import { Names, toName } from "./names.ts"
import { has, pointer, setFaults } from "./pointer.ts"

// The base of references in a document without a URL. The name is reserved (RFC 2606).
const unknownBase = "https://document.invalid/openapi.json"

/** Whether a reference is relative, in a document without a URL. */
export const isUnknown = (url: URL): boolean => url.hostname === new URL(unknownBase).hostname

/** The member of the document with the other documents, by their names. */
const member = "x-other-documents"

// Members whose values are data, where a `$ref` is not a reference.
const data: ReadonlySet<string> = new Set(["example", "examples", "default", "enum", "const"])

// Parts of a document that no request needs. Their references are not followed.
const unused: ReadonlySet<string> = new Set(["info", "tags", "externalDocs", "links", "callbacks", "webhooks"])

// Members whose values are parts by name, where a name may be that of a keyword.
const named: ReadonlySet<string> = new Set([
  ...["properties", "patternProperties", "dependentSchemas", "$defs", "definitions", "paths", "schemas", "responses"],
  ...["parameters", "headers", "requestBodies", "securitySchemes", "pathItems", "mediaTypes", "content", "encoding"],
  "additionalOperations"
])

/** The position of a part: its place, and the schema with an `$id`, or the document, that it belongs to. */
interface Scope {
  readonly place: string
  readonly base: string
  readonly resource: string
  /** The place of the document. */
  readonly document: string
}

interface Reference {
  readonly node: Record<string, unknown>
  readonly key: "$ref" | "$dynamicRef"
  readonly url: URL
  readonly scope: Scope
}

const withoutFragment = ({ hash, href }: URL): string => href.slice(0, href.length - hash.length)

class Collector {
  /** The places of documents, and of schemas with an `$id`, by their URLs. */
  readonly resources = new Map<string, string>()
  /** The places of anchors, by their URLs. */
  readonly anchors = new Map<string, string>()
  /** The places of the schemas with each `$dynamicAnchor`. */
  readonly dynamicAnchors = new Map<string, Array<string>>()
  /** The references other than `#/…` in the document itself, which are local already. */
  readonly references: Array<Reference> = []
  readonly #seen = new WeakSet<object>()
  readonly #hasSchemaIds: boolean

  constructor(hasSchemaIds: boolean) {
    this.#hasSchemaIds = hasSchemaIds
  }

  add(document: JsonObject, place: string, base: string): void {
    this.resources.set(base, place)
    this.#visit(document, { place, base, resource: place, document: place }, false)
  }

  // The tree is bounded, so that it does not exceed the stack. A YAML alias is visited once.
  #visit(value: unknown, scope: Scope, areNames: boolean): void {
    if (typeof value !== "object" || value === null || this.#seen.has(value)) return
    this.#seen.add(value)
    const inner = isObject(value) && !areNames ? this.#enter(value, scope) : scope
    for (const [key, child] of Object.entries(value)) {
      const isKeyword = !areNames && !Array.isArray(value)
      if (isKeyword && (data.has(key) || unused.has(key) || key.startsWith("x-"))) continue
      this.#visit(child, { ...inner, place: inner.place + pointer(key).slice(1) }, isKeyword && named.has(key))
    }
  }

  #enter(node: Record<string, unknown>, scope: Scope): Scope {
    const inner = this.#hasSchemaIds ? this.#identify(node, scope) : scope
    for (const key of this.#hasSchemaIds ? (["$ref", "$dynamicRef"] as const) : (["$ref"] as const)) {
      const reference = node[key]
      if (typeof reference !== "string" || (key === "$ref" && reference.startsWith("#/") && inner.resource === "#")) {
        continue
      }
      const url = Result.try(() => new URL(reference, inner.base))
      if (Result.isSuccess(url)) this.references.push({ node, key, url: url.success, scope: inner })
    }
    return inner
  }

  /** Reads `$id` and the anchors of a schema (JSON Schema 2020-12, 8.2). An `$id` such as `#pet` is an anchor, too. */
  #identify(node: JsonObject, scope: Scope): Scope {
    const { $anchor, $dynamicAnchor, $id, $self } = node
    const id = $id ?? (scope.place === scope.document ? $self : undefined)
    const url = typeof id === "string" ? Result.getOrUndefined(Result.try(() => new URL(id, scope.base))) : undefined
    const isBase = url !== undefined && url.hash === ""
    if (url !== undefined && !isBase) this.anchors.set(url.href, scope.place)
    const base = isBase ? url.href : scope.base
    if (isBase && !this.resources.has(base)) this.resources.set(base, scope.place)
    for (const name of [$anchor, $dynamicAnchor]) {
      if (typeof name === "string") this.anchors.set(`${base}#${name}`, scope.place)
    }
    if (typeof $dynamicAnchor === "string") {
      const places = this.dynamicAnchors.get($dynamicAnchor)
      if (places === undefined) this.dynamicAnchors.set($dynamicAnchor, [scope.place])
      else places.push(scope.place)
    }
    return isBase ? { ...scope, base, resource: scope.place } : scope
  }

  /** The place that a reference leads to, if its document is known. */
  placeOf(root: JsonObject, { scope, url }: Reference): string | undefined {
    const place = this.resources.get(withoutFragment(url))
    if (place === undefined || url.hash === "") return place
    if (!url.hash.startsWith("#/")) return this.anchors.get(url.href)
    const within = place + url.hash.slice(1)
    // Some generators write the name of a schema as its `$id`, and references of the document inside.
    return place === scope.resource && place !== scope.document && !has(root, within)
      ? scope.document + url.hash.slice(1)
      : within
  }
}

/** The most targets of a `$dynamicRef`. With more it accepts every value. */
const maxTargets = 16

/**
 * Makes a `$dynamicRef` accept each of its targets, if there are several. The schemas that lead to it choose one of them
 * (JSON Schema 2020-12, 8.2.3.2), but a definition is converted once for all of these schemas. The keyword stays, for the
 * report of the parts that have an effect only in part.
 */
const chooseAmong = (targets: ReadonlyArray<string>, first: string, node: Record<string, unknown>): boolean => {
  // The length is compared first: a document may have thousands of both.
  if (targets.length > maxTargets) return true
  if (targets.length < 2 || !targets.includes(first)) return false
  const { allOf } = node
  node["allOf"] = [...(Array.isArray(allOf) ? allOf : []), { anyOf: targets.map(($ref) => ({ $ref })) }]
  return true
}

/**
 * Adds the documents that references lead to, and makes the references local. It changes the document. `read` reads
 * another document. `hasSchemaIds` tells whether `$id` and anchors have a meaning, which is the case since OpenAPI 3.1.
 */
export const localize = Effect.fnUntraced(function*(
  root: Record<string, unknown>,
  url: URL | undefined,
  hasSchemaIds: boolean,
  read: (url: URL) => Effect.Effect<JsonObject, OpenApiError>
) {
  const collector = new Collector(hasSchemaIds)
  collector.add(root, "#", url === undefined ? unknownBase : withoutFragment(url))
  const names = new Names()
  const others: Record<string, unknown> = {}
  const failed = new Map<string, OpenApiError>()
  for (let from = 0; from < collector.references.length;) {
    const next = new Set(collector.references.slice(from).map((each) => withoutFragment(each.url)))
    from = collector.references.length
    const wanted = [...next].filter((each) => !collector.resources.has(each) && !failed.has(each))
    const found = yield* Effect.forEach(wanted, (each) => Effect.result(read(new URL(each))), { concurrency: 8 })
    for (const [at, base] of wanted.entries()) {
      const result = found[at]!
      if (Result.isFailure(result)) {
        failed.set(base, result.failure)
        continue
      }
      const name = names.take(toName(base.slice(base.lastIndexOf("/") + 1), "document"))
      others[name] = result.success
      collector.add(result.success, pointer(member, name), base)
    }
  }
  if (Object.keys(others).length > 0) root[member] = others
  const faults = new Map<string, OpenApiError>()
  for (const reference of collector.references) {
    const { key, node, url: target } = reference
    const fault = failed.get(withoutFragment(target))
    if (fault !== undefined) faults.set(target.href, fault)
    // An anchor that a known document lacks stays an anchor, which leads to nothing.
    const isKnown = collector.resources.has(withoutFragment(target))
    const place = collector.placeOf(root, reference) ?? (isKnown ? target.hash : target.href)
    if (key === "$dynamicRef" && chooseAmong(collector.dynamicAnchors.get(target.hash.slice(1)) ?? [], place, node)) {
      continue
    }
    // Without another anchor of its name, a `$dynamicRef` is a `$ref`.
    if (key === "$dynamicRef" && node["$ref"] === undefined) delete node[key]
    if (key === "$ref" || node["$ref"] === undefined) node["$ref"] = place
  }
  setFaults(root, faults)
})
