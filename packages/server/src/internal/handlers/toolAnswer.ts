/**
 * The values that the handler of a tool without an output schema may return, and the content that is sent for them.
 *
 * Types refuse the common mistakes. JavaScript, and types that say too little, need the same rules at run time.
 */
import * as Json from "@skein/protocol/Json"
import { isObject, type JsonObject } from "@skein/protocol/JsonRpc"
import * as Nesting from "@skein/protocol/Nesting"
import * as Effect from "effect/Effect"
import * as Content from "../../Content.ts"
import { isIterating } from "./wrongAnswer.ts"

/** Marks the type of `Tool.result`. No value has it. */
export const resultBrand: unique symbol = Symbol.for("@skein/server/ToolResult")

/**
 * An object or an array whose JSON is sent as text. An index signature would refuse the values of interfaces, so the
 * type names the members of values without JSON instead, and of the results of other SDKs.
 */
export type Data = object & {
  readonly content?:
    | Atom
    | (object & { readonly length?: never })
    | ReadonlyArray<
      Atom | (object & { readonly type?: never })
    >
  // Functions, effects, and results whose structured content needs an output schema.
  readonly bind?: never
  readonly [Effect.TypeId]?: never
  readonly [resultBrand]?: never
  // Bytes, maps, sets, promises, generators and responses of `fetch`.
  readonly BYTES_PER_ELEMENT?: never
  readonly [Symbol.toStringTag]?: never
  readonly bodyUsed?: never
  readonly next?: Atom | (object & { readonly bind?: never })
}

type Atom = string | number | boolean | null | undefined

/** A returned value for which nothing is sent. */
export class Refusal {
  /** The returned value and the remedy: the object of "the handler returned". A client may read it. */
  readonly problem: string
  /** The error of a value that was to be written, for the log. */
  readonly error: unknown

  constructor(problem: string, error?: unknown) {
    this.problem = problem
    this.error = error
  }
}

type Answered = ReadonlyArray<Content.ContentBlock> | Refusal

/** Returns the content for a value that a handler returned. */
export const toContent = (value: unknown): Answered => {
  switch (typeof value) {
    case "undefined":
      return []
    case "object":
      return value === null ? [Content.text("null")] : contentOf(value)
    case "function":
      return new Refusal("a function, which has no JSON: call it, and return its result")
    case "symbol":
      return new Refusal("a symbol, which has no JSON")
    default:
      return [Content.text(String(value))]
  }
}

const contentOf = (value: object): Answered => {
  const items: ReadonlyArray<unknown> = Array.isArray(value) ? value : [value]
  const meant = items.filter(hasBlockType)
  if (meant.length === 0) {
    const wrong = items.find(isMisnamedBlock)
    if (wrong === undefined) return isWholeResult(value) ? wholeResult : jsonOf(value)
    return new Refusal(
      `a content block of the type ${JSON.stringify(wrong.type)}, which does not exist: the types are ` +
        `${Object.keys(members).join(", ")}; return JSON.stringify(value) if it is data`
    )
  }
  const malformed = meant.find((item) => !hasMembers(item))
  if (malformed !== undefined) {
    return new Refusal(
      `a content block of type ${malformed.type} without ${members[malformed.type]}: ` +
        "make it with the module Content, or return JSON.stringify(value) if it is data"
    )
  }
  return meant.length === items.length
    ? meant as ReadonlyArray<object> as ReadonlyArray<Content.ContentBlock>
    : new Refusal("content blocks among other items: return blocks only, or JSON.stringify(value) if it is data")
}

/** The required members of the content blocks, by type. */
const members = {
  text: "its text",
  image: "data and mimeType",
  audio: "data and mimeType",
  resource_link: "uri and name",
  resource: "a resource with uri, and text or blob"
}

type Block = JsonObject & { readonly type: keyof typeof members }

const hasBlockType = (value: unknown): value is Block =>
  isObject(value) && typeof value["type"] === "string" && Object.hasOwn(members, value["type"])

/** The types of content of other APIs, and typos of those of blocks. */
const misnamed = new Set(["txt", "texts", "string", "markdown", "json", "img", "images", "image_url", "input_text"]
  .concat("output_text", "input_image", "input_audio", "sound", "file", "document", "resourceLink", "link"))

const isMisnamedBlock = (value: unknown): value is { readonly type: string } =>
  isObject(value) && misnamed.has(value["type"] as string) &&
  ["text", "data", "image_url", "source"].some((name) => value[name] !== undefined) &&
  Object.keys(value).length <= 3

const hasMembers = (block: Block): boolean => {
  const has = (name: string) => typeof block[name] === "string"
  switch (block.type) {
    case "text":
      return has("text")
    case "resource_link":
      return has("uri") && has("name")
    case "resource": {
      const { resource } = block
      return isObject(resource) && typeof resource["uri"] === "string" &&
        (typeof resource["text"] === "string" || typeof resource["blob"] === "string")
    }
    default:
      return has("data") && has("mimeType")
  }
}

const wholeResult = new Refusal(
  "a whole result: return the content blocks themselves, or Tool.result({ content, … })"
)

/** Whether a value is a result of another SDK. A page of data may have a list named `content` too. */
const isWholeResult = (value: object): boolean => {
  if (!isObject(value) || !Array.isArray(value["content"])) return false
  const { content, ...rest } = value
  return content.length > 0
    ? content.every(hasBlockType)
    : Object.keys(rest).every((name) => ["_meta", "isError", "structuredContent"].includes(name))
}

const jsonOf = (value: object): Answered => {
  if (Effect.isEffect(value)) {
    return new Refusal("an effect that did not run: run it, or return it as the effect of Tool.layer")
  }
  if (ArrayBuffer.isView(value)) {
    return new Refusal("bytes, which have no JSON: return Content.image, Content.audio or Content.resource")
  }
  try {
    const json = Json.stringify(value)
    // The JSON of a Map, a promise, an error and the like has nothing of their content.
    if (json !== undefined && (json !== "{}" || isPlain(value))) return [Content.text(json)]
  } catch (error) {
    if (Nesting.exceedsStack(error)) throw error
    return new Refusal("a value that has no JSON, such as one that refers to itself or has a bigint", error)
  }
  return new Refusal(withoutJson(value))
}

const withoutJson = (value: object): string => {
  if (value instanceof Map) return "a Map, which has no JSON: return Object.fromEntries(map), or an array"
  if (value instanceof Set) return "a Set, which has no JSON: return Array.from(set)"
  if (isIterating(value)) return "a generator, which has no JSON: return Array.from(generator), or use Effect.gen"
  if ("bodyUsed" in value) {
    return "a Response, which has no JSON: return await response.text(), or await response.json()"
  }
  // The name of an anonymous class is empty.
  const name = value.constructor?.name || Object.prototype.toString.call(value).slice(8, -1)
  return `an instance of ${name}, which has no JSON: return its content as an object or text`
}

const isPlain = (value: object): boolean => {
  const prototype: unknown = Object.getPrototypeOf(value)
  return prototype === null || prototype === Object.prototype
}
