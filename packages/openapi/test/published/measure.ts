/** Serves a public document, checks its tools, and calls a sample of them against a mock of the document. */
import * as Client from "@skein/client/Client"
import * as OpenApi from "@skein/openapi/OpenApi"
import { isObject, type JsonObject } from "@skein/protocol/JsonRpc"
import * as InMemoryTransport from "@skein/runtime/InMemoryTransport"
import * as McpServer from "@skein/server/McpServer"
import { Ajv2020 } from "ajv/dist/2020.js"
import * as Context from "effect/Context"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import { load } from "js-yaml"
import { readFileSync } from "node:fs"
import { json, MockApi, type Seen, textOf } from "../kit.ts"
import type { Published } from "./documents.ts"
import { exampleOf, follow } from "./example.ts"

const baseUrl = "https://mock.example/base"
const methods = ["get", "put", "post", "delete", "options", "head", "patch", "trace"]

/** The numbers of a document, and what is wrong with its tools. */
export interface Measured {
  readonly operations: number
  readonly tools: number
  /** The operations that are left out: their reasons. */
  readonly leftOut: ReadonlyArray<string>
  /** The places of operations that are neither a tool nor left out, or both. */
  readonly unaccounted: ReadonlyArray<string>
  readonly millis: number
  readonly listChars: number
  readonly largestTool: number
  readonly called: number
  readonly invalidSchemas: ReadonlyArray<string>
  readonly failures: ReadonlyArray<string>
}

const read = (url: URL): JsonObject => {
  const text = readFileSync(url, "utf8").replace(/^\ufeff/, "")
  return (url.pathname.endsWith(".json") ? JSON.parse(text) : load(text)) as JsonObject
}

/** The answer that a document declares for an operation, with the required members of its schema. */
const answerOf = (root: JsonObject, node: JsonObject): Response => {
  const responses = isObject(node["responses"]) ? node["responses"] : {}
  const code = Object.keys(responses).find((each) => each.startsWith("2"))
  const content = code === undefined ? {} : follow(root, responses[code])["content"]
  const media = isObject(content) ? content["application/json"] : undefined
  return media === undefined
    ? new Response(null, { status: 204 })
    : json(exampleOf(root, follow(root, media)["schema"]))
}

/** The path items, of which each may be in a file of its own. */
const itemsOf = (root: JsonObject, url: URL): ReadonlyArray<readonly [string, JsonObject]> =>
  Object.entries(isObject(root["paths"]) ? root["paths"] : {}).map(([path, item]) => {
    const reference = isObject(item) ? item["$ref"] : undefined
    const isFile = typeof reference === "string" && !reference.startsWith("#")
    return [path, isFile ? read(new URL(reference, url)) : follow(root, item)]
  })

const placeOf = (path: string, method: string): string =>
  `#/paths/${path.replaceAll("~", "~0").replaceAll("/", "~1")}/${method}`

/** Says how a request differs from the operation that was called. */
const faultOf = (
  root: JsonObject,
  { method, path }: OpenApi.Operation,
  item: JsonObject,
  seen: Seen
): string | undefined => {
  const node = item[method.toLowerCase()] as JsonObject
  const pattern = path.split(/[?#]/)[0]!.split(/\{[^{}]+\}/).map((part) =>
    part.replaceAll(/[.*+?^${}()|[\]\\]/g, "\\$&")
  )
  const url = new URL(seen.url)
  if (seen.method !== method || !new RegExp(`^/base${pattern.join("[^/]+")}$`).test(decodeURI(url.pathname))) {
    return `${seen.method} ${seen.url}`
  }
  const parameters = [item["parameters"], node["parameters"]].flatMap((list) => Array.isArray(list) ? list : [])
    .map((each) => follow(root, each))
  const missing = parameters.filter((each) =>
    each["in"] === "query" && each["required"] === true &&
    !url.search.includes(encodeURIComponent(String(each["name"])))
  )
  if (
    missing.some(({ schema }) => follow(root, schema)["type"] !== "array" && follow(root, schema)["type"] !== "object")
  ) {
    return `${seen.url} lacks ${missing.map(({ name }) => name).join()}`
  }
  const type = seen.headers["content-type"]?.split(";")[0]
  const content = follow(root, node["requestBody"])["content"]
  const types = isObject(content) ? Object.keys(content).map((key) => key.split(";")[0]) : []
  return type === undefined || type === "multipart/form-data" || types.includes(type) ||
      types.some((each) => each?.includes("*") || !each?.includes("/"))
    ? undefined
    : `the body is ${type}, not ${types.join()}`
}

/** Measures a document. */
export const measure = ({ maxCalls, url }: Published): Effect.Effect<Measured, unknown> =>
  Effect.scoped(Effect.gen(function*() {
    const root = read(url)
    const items = new Map(itemsOf(root, url))
    const options: OpenApi.Options = {
      baseUrl,
      maxOperations: 5_000,
      allowReference: ({ href }) => href.startsWith(new URL("node_modules/@mojaloop/", import.meta.url).href)
    }
    const api = new MockApi()
    const start = performance.now()
    const server = McpServer.layer({ name: "api", version: "1", pageSize: 5_000 }, OpenApi.layer(url, options))
    const context = yield* Layer.build(Layer.provide(server, api.layer))
    const millis = performance.now() - start
    const client = yield* Client.make(InMemoryTransport.transport(Context.get(context, McpServer.McpServer).serve))
    const tools = yield* client.listTools()
    const { definitions, leftOut } = yield* OpenApi.list(url, options)
    const ajv = new Ajv2020({ strict: false, logger: false, validateFormats: false })
    const invalidSchemas: Array<string> = []
    const failures: Array<string> = []
    let called = 0
    const calls = Math.min(maxCalls, tools.length)
    const byName = new Map(definitions.map(({ name, operation }) => [name, operation]))
    for (const [at, { inputSchema, name }] of tools.entries()) {
      let validate
      try {
        validate = ajv.compile(inputSchema)
      } catch (error) {
        invalidSchemas.push(`${name}: ${String(error)}`)
        continue
      }
      const args = exampleOf(inputSchema as JsonObject, inputSchema) as JsonObject
      // A value for a pattern, for example, needs more than the generator can do.
      if (called >= Math.ceil((at + 1) * calls / tools.length) || !validate(args)) continue
      const operation = byName.get(name)!
      const item = items.get(operation.path)!
      api.answer = () => answerOf(root, item[operation.method.toLowerCase()] as JsonObject)
      const before = api.seen.length
      const result = yield* client.callTool(name, args)
      called++
      const fault = api.seen.length === before ? "no request" : faultOf(root, operation, item, api.last)
      if (fault !== undefined || result.isError === true) failures.push(`${name}: ${fault ?? textOf(result)}`)
    }
    const places = [...items].flatMap(([path, item]) =>
      methods.filter((method) => isObject(item[method])).map((method) => placeOf(path, method))
    )
    const found = [
      ...definitions.map(({ operation: { method, path } }) => placeOf(path, method.toLowerCase())),
      ...leftOut.filter(({ kind }) => kind === "operation").map(({ place }) => place)
    ]
    const sizes = tools.map((tool) => JSON.stringify(tool).length)
    return {
      operations: places.length,
      tools: tools.length,
      leftOut: leftOut.filter(({ kind }) => kind === "operation").map(({ message }) => message),
      unaccounted: [...places, ...found].filter((place) =>
        found.filter((each) => each === place).length !== 1 || !places.includes(place)
      ),
      millis: Math.round(millis),
      listChars: sizes.reduce((sum, size) => sum + size, 0),
      largestTool: Math.max(...sizes),
      called,
      invalidSchemas,
      failures
    }
  }))
