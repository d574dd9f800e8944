/** The inferred types, which `npm run check` checks. The run-time assertions check that the same values work. */
import { describe, expect, expectTypeOf, it } from "@effect/vitest"
import type { JsonObject } from "@skein/protocol/JsonRpc"
import { McpRequest } from "@skein/runtime/RequestContext"
import type * as Catalog from "@skein/server/Catalog"
import type * as Completion from "@skein/server/Completion"
import type { DefinitionError } from "@skein/server/DefinitionError"
import type { HandlerError } from "@skein/server/HandlerError"
import * as JsonSchema from "@skein/server/JsonSchema"
import * as McpServer from "@skein/server/McpServer"
import type * as NodeHttp from "@skein/server/NodeHttp"
import * as Prompt from "@skein/server/Prompt"
import * as Resource from "@skein/server/Resource"
import * as ResourceTemplate from "@skein/server/ResourceTemplate"
import * as StandardSchema from "@skein/server/StandardSchema"
import * as Tool from "@skein/server/Tool"
import { type } from "arktype"
import * as Context from "effect/Context"
import * as Data from "effect/Data"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import * as Schema from "effect/Schema"
import type * as Scope from "effect/Scope"
import type { IncomingMessage } from "node:http"
import * as v from "valibot"
import { z } from "zod"

class Kettle extends Context.Service<Kettle, { readonly name: string }>()("types/Kettle") {}
class Leaf extends Context.Service<Leaf, { readonly kind: string }>()("types/Leaf") {}
class OutOfTea extends Data.TaggedError("OutOfTea")<{ readonly message: string }> {}

describe("tools", () => {
  it("a handler's argument is the decoded input", () => {
    const fields = Tool.make("t", {
      input: { n: Schema.NumberFromString, when: Schema.optionalKey(Schema.Date), list: Schema.Array(Schema.String) }
    })
    Tool.layer(fields, (input) => {
      expectTypeOf(input).toEqualTypeOf<
        { readonly n: number; readonly when?: Date; readonly list: ReadonlyArray<string> }
      >()
      return Effect.void
    })
    class Point extends Schema.Class<Point>("TypesPoint")({ x: Schema.Int }) {}
    Tool.layer(Tool.make("t", { input: Point }), (input) => {
      expectTypeOf(input).toEqualTypeOf<Point>()
      return Effect.void
    })
    Tool.layer(Tool.make("t"), (input) => {
      expectTypeOf(input).toEqualTypeOf<{}>()
      return Effect.void
    })
    expectTypeOf(fields.name).toEqualTypeOf<"t">()
    expect(fields.name).toBe("t")
  })

  it("with an output schema a handler returns its value, or a result of it", () => {
    const sum = Tool.make("sum", { output: { sum: Schema.Int, at: Schema.Date } })
    const at = new Date(0)
    Tool.layer(sum, () => Effect.succeed({ sum: 1, at }))
    Tool.layer(sum, () => Effect.succeed(Tool.result({ structured: { sum: 1, at }, content: "one" })))
    Tool.layer(sum, () => Effect.succeed(Tool.result({ isError: true, content: "none" })))
    // @ts-expect-error the sum is a number
    Tool.layer(sum, () => Effect.succeed({ sum: "1", at }))
    // @ts-expect-error the value is not text
    Tool.layer(sum, () => Effect.succeed("1"))
    // @ts-expect-error a result without isError requires structured content
    Tool.layer(sum, () => Effect.succeed(Tool.result({ content: "x" })))
    // @ts-expect-error the structured content does not match the schema
    Tool.layer(sum, () => Effect.succeed(Tool.result({ structured: { sum: "1" } })))
    expect(Tool.result({ isError: true })).toBeDefined()
  })

  it("without an output schema a handler returns text, data, blocks, or nothing", () => {
    const plain = Tool.make("plain")
    Tool.layer(plain, () => Effect.succeed("text"))
    Tool.layer(plain, () => Effect.succeed({ type: "text" as const, text: "a" }))
    Tool.layer(plain, () => Effect.succeed([{ type: "text" as const, text: "a" }]))
    Tool.layer(plain, () => Effect.void)
    Tool.layer(plain, () => Effect.succeed(Tool.result({ content: "a", _meta: { "example.com/a": 1 } })))
    Tool.layer(plain, () => Effect.succeed(Tool.result({ content: "a", isError: true })))
    // @ts-expect-error structured content needs an output schema
    Tool.layer(plain, () => Effect.succeed(Tool.result({ structured: { a: 1 } })))
    interface Tea {
      readonly id: number
      readonly type: string
      readonly content: string
    }
    const teas: ReadonlyArray<Tea> = []
    Tool.layer(plain, () => Effect.succeed({ sum: 1 }))
    Tool.layer(plain, () => Effect.succeed(teas))
    Tool.layer(plain, () => Effect.succeed({ content: teas.map(({ id }) => ({ id })), total: 1 }))
    Tool.async(plain, async () => teas.find(({ id }) => id === 1))
    Tool.async(plain, async () => teas[0] ?? null)
    Tool.async(plain, () => 1n)
    // @ts-expect-error a symbol has no JSON
    Tool.async(plain, () => Symbol.iterator)
    expect(plain.output).toBeUndefined()
  })

  it("with schemas of other libraries a handler receives the input's output, and returns the output's input", () => {
    const tool = Tool.make("t", {
      input: z.object({ n: z.number().default(1), at: z.string().transform((text) => new Date(text)) }),
      output: z.object({ sum: z.string().transform(Number).pipe(z.number()) })
    })
    Tool.layer(tool, (input) => {
      expectTypeOf(input).toEqualTypeOf<{ n: number; at: Date }>()
      return Effect.succeed({ sum: "1" })
    })
    // @ts-expect-error the input side of the sum is a string
    Tool.layer(tool, () => Effect.succeed({ sum: 1 }))
    Tool.layer(Tool.make("t", { input: type({ "a?": "string", b: "number" }) }), (input) => {
      expectTypeOf(input).toEqualTypeOf<{ a?: string; b: number }>()
      return Effect.void
    })
    const valibot = v.object({ n: v.optional(v.number(), 3) })
    Tool.layer(Tool.make("t", { input: StandardSchema.withJsonSchema(valibot, { type: "object" }) }), (input) => {
      expectTypeOf(input).toEqualTypeOf<{ n: number }>()
      return Effect.void
    })
    // The types of the Effect Schema take precedence over those of the Standard Schema.
    Tool.layer(Tool.make("t", { input: Schema.toStandardSchemaV1(Schema.Struct({ at: Schema.Date })) }), (input) => {
      expectTypeOf(input).toEqualTypeOf<{ readonly at: Date }>()
      return Effect.void
    })
    expect(tool.output?.jsonSchema()).toMatchObject({ type: "object", required: ["sum"] })
  })

  it("with a JSON Schema a handler receives an object, or the declared type", () => {
    const tool = Tool.make("t", { input: JsonSchema.make({ type: "object" }) })
    Tool.layer(tool, (input) => {
      expectTypeOf(input).toEqualTypeOf<JsonObject>()
      return Effect.void
    })
    const declared = Tool.make("t", {
      input: JsonSchema.make<{ readonly a: number }>({ type: "object" }),
      output: JsonSchema.make<ReadonlyArray<string>>({ type: "array" })
    })
    Tool.layer(declared, (input) => {
      expectTypeOf(input).toEqualTypeOf<{ readonly a: number }>()
      return Effect.succeed(["a"])
    })
    // @ts-expect-error the result must be a list of strings
    Tool.layer(declared, () => Effect.succeed([1]))
    expect(declared.name).toBe("t")
  })

  it("a handler's failure has a message", () => {
    Tool.layer(Tool.make("t"), () => Effect.fail(new OutOfTea({ message: "none" })))
    expectTypeOf<string>().not.toExtend<HandlerError>()
    expectTypeOf<OutOfTea>().toExtend<HandlerError>()
    expect(new OutOfTea({ message: "none" }).message).toBe("none")
  })

  it("schemas that require services are refused", () => {
    const needy = Schema.String.pipe(Schema.decodeTo(Schema.String, {
      decode: null as never,
      encode: null as never
    })) as unknown as Schema.Codec<string, string, Kettle>
    // @ts-expect-error decoding requires a Kettle
    expect(Tool.make("t", { input: { a: needy } }).name).toBe("t")
  })
})

describe("templates", () => {
  it("the variables are inferred from the template's text", () => {
    type M<T extends string> = ResourceTemplate.Matched<T>
    expectTypeOf<M<"a://{x}/{y}">>().toEqualTypeOf<{ readonly x: string; readonly y: string }>()
    expectTypeOf<M<"a://{+path}">>().toEqualTypeOf<{ readonly path: string }>()
    expectTypeOf<M<"a://{x,y*}">>().toEqualTypeOf<{ readonly x: string; readonly y: ReadonlyArray<string> }>()
    expectTypeOf<M<"a:/{/path*}">>().toEqualTypeOf<{ readonly path?: ReadonlyArray<string> }>()
    expectTypeOf<M<"a://{x}{?q,tag*}{#f}">>().toEqualTypeOf<
      { readonly x: string; readonly q?: string; readonly tag?: ReadonlyArray<string>; readonly f?: string }
    >()
    expectTypeOf<M<"a://b">>().toEqualTypeOf<{}>()
    expectTypeOf<M<string>>().toEqualTypeOf<{ readonly [name: string]: string | ReadonlyArray<string> }>()
    const template = ResourceTemplate.make("a://{x}{?q}", { name: "t" })
    ResourceTemplate.layer(template, (variables, uri) => {
      expectTypeOf(variables).toEqualTypeOf<{ readonly x: string; readonly q?: string }>()
      expectTypeOf(uri).toEqualTypeOf<string>()
      return Effect.succeed("")
    })
    expect(template.uriTemplate).toBe("a://{x}{?q}")
  })

  it("or are the decoded values of their schemas", () => {
    const template = ResourceTemplate.make("a://{x}{?q}", {
      name: "t",
      variables: { x: Schema.NumberFromString, q: Schema.optionalKey(Schema.String) }
    })
    ResourceTemplate.layer(template, (variables) => {
      expectTypeOf(variables).toEqualTypeOf<{ readonly x: number; readonly q?: string }>()
      return Effect.succeed("")
    })
    expect(template.variables).toBeDefined()
    // @ts-expect-error the template has no variable y
    expect(ResourceTemplate.make("a://{x}", { name: "t", variables: { y: Schema.String } }).uriTemplate).toBe("a://{x}")
    const text: string = "a://{x}"
    expect(ResourceTemplate.make(text, { name: "t", variables: { x: Schema.String } }).uriTemplate).toBe("a://{x}")
  })
})

describe("prompts", () => {
  it("a handler's argument is the decoded arguments", () => {
    const prompt = Prompt.make("p", {
      arguments: { n: Schema.NumberFromString, s: Schema.optionalKey(Schema.String), o: Schema.optional(Schema.String) }
    })
    Prompt.layer(prompt, (args) => {
      expectTypeOf(args).toEqualTypeOf<{ readonly n: number; readonly s?: string; readonly o?: string | undefined }>()
      return Effect.succeed("")
    })
    // @ts-expect-error an argument is text on the wire
    expect(Prompt.make("p", { arguments: { n: Schema.Int } }).name).toBe("p")
  })
})

describe("completion", () => {
  const prompt = Prompt.make("p", { arguments: { a: Schema.NumberFromString, b: Schema.optionalKey(Schema.String) } })
  const handler = () => Effect.succeed("")

  it("exists only for the declared arguments", () => {
    Prompt.layer(prompt, handler, {
      complete: {
        a: (value, others) => {
          expectTypeOf(value).toEqualTypeOf<string>()
          // The arguments are still encoded, and may be absent.
          expectTypeOf(others).toEqualTypeOf<{ readonly a?: string; readonly b?: string }>()
          return []
        },
        b: ["x"]
      }
    })
    // @ts-expect-error the prompt does not have an argument c
    Prompt.layer(prompt, handler, { complete: { c: ["x"] } })
    // @ts-expect-error suggestions must be strings
    Prompt.layer(prompt, handler, { complete: { a: [1] } })
    // A source's failure has a message.
    expectTypeOf<Effect.Effect<ReadonlyArray<string>, OutOfTea>>().toExtend<Completion.Source<"a">>()
    expectTypeOf<Effect.Effect<ReadonlyArray<string>, string>>().not.toExtend<Completion.Source<"a">>()
    const template = ResourceTemplate.make("a://{x}{?q}", { name: "t" })
    ResourceTemplate.layer(template, handler, { complete: { x: ["1"], q: Effect.succeed(["2"]) } })
    // @ts-expect-error the template does not have a variable y
    ResourceTemplate.layer(template, handler, { complete: { y: ["1"] } })
    expect(prompt.name).toBe("p")
  })

  it("may require services, which the layer then requires", () => {
    const layer = Prompt.layer(prompt, () => Effect.as(Kettle, ""), {
      complete: { a: Effect.as(Leaf, ["x"]), b: () => Effect.as(McpRequest, ["x"]) }
    })
    expectTypeOf(layer).toEqualTypeOf<Layer.Layer<never, DefinitionError, Catalog.Catalog | Kettle | Leaf>>()
    const template = ResourceTemplate.layer(ResourceTemplate.make("a://{x}", { name: "t" }), () => Effect.succeed(""), {
      complete: { x: (value) => Effect.map(Leaf, ({ kind }) => [kind, value]) }
    })
    expectTypeOf(template).toEqualTypeOf<Layer.Layer<never, DefinitionError, Catalog.Catalog | Leaf>>()
    expect(Layer.isLayer(layer)).toBe(true)
  })
})

describe("at run time", () => {
  it("a change requires the scope that undoes it, and the services of its handler", () => {
    const add = Tool.add(Tool.make("t"), () => Effect.as(Kettle, "x"))
    expectTypeOf(add).toEqualTypeOf<Effect.Effect<void, DefinitionError, Scope.Scope | Catalog.Catalog | Kettle>>()
    const replace = Resource.replace(Resource.make("a://b"), Effect.as(McpRequest, ""))
    expectTypeOf(replace).toEqualTypeOf<Effect.Effect<void, DefinitionError, Scope.Scope | Catalog.Catalog>>()
    expect(Effect.isEffect(add)).toBe(true)
  })
})

describe("layers", () => {
  const tool = Tool.make("t")
  const all = Effect.gen(function*() {
    yield* Kettle
    yield* McpRequest
    return "x"
  })

  it("require the catalog and the services of the handler, except the request", () => {
    const layer = Tool.layer(tool, () => all)
    expectTypeOf(layer).toEqualTypeOf<Layer.Layer<never, DefinitionError, Catalog.Catalog | Kettle>>()
    const resource = Resource.layer(Resource.make("a://b"), all)
    expectTypeOf(resource).toEqualTypeOf<Layer.Layer<never, DefinitionError, Catalog.Catalog | Kettle>>()
    const prompt = Prompt.layer(Prompt.make("p"), () => all)
    expectTypeOf(prompt).toEqualTypeOf<Layer.Layer<never, DefinitionError, Catalog.Catalog | Kettle>>()
    const plain = Tool.layer(tool, () => Effect.succeed("x"))
    expectTypeOf(plain).toEqualTypeOf<Layer.Layer<never, DefinitionError, Catalog.Catalog>>()
    const server = McpServer.layer({ name: "t", version: "1" }, layer, Tool.layer(tool, () => Effect.as(Leaf, "x")))
    expectTypeOf(server).toEqualTypeOf<
      Layer.Layer<McpServer.McpServer | Catalog.Catalog, DefinitionError, Kettle | Leaf>
    >()
    const done = McpServer.layer(
      { name: "t", version: "1" },
      Layer.provide(layer, Layer.succeed(Kettle, { name: "k" }))
    )
    expectTypeOf(done).toEqualTypeOf<Layer.Layer<McpServer.McpServer | Catalog.Catalog, DefinitionError>>()
    expectTypeOf(McpServer.layer({ name: "t", version: "1" })).toEqualTypeOf<
      Layer.Layer<McpServer.McpServer | Catalog.Catalog>
    >()
    expect(Layer.isLayer(done)).toBe(true)
  })

  it("of a handler that only throws, such as an unfinished one, require no services for it", () => {
    const todo = () => {
      throw new Error("todo")
    }
    const layers = Layer.mergeAll(
      Tool.layer(tool, todo),
      Prompt.layer(Prompt.make("p"), todo),
      ResourceTemplate.layer(ResourceTemplate.make("a://{x}", { name: "t" }), todo)
    )
    expectTypeOf(layers).toEqualTypeOf<Layer.Layer<never, DefinitionError, Catalog.Catalog>>()
    expect(Layer.isLayer(layers)).toBe(true)
  })

  it("of a handler that requires a scope cannot be built, unless it is wrapped in Effect.scoped", () => {
    const acquire = Effect.acquireRelease(Effect.succeed("x"), () => Effect.void)
    const layer = Tool.layer(tool, () => acquire)
    expectTypeOf(layer).toEqualTypeOf<Layer.Layer<never, DefinitionError, Catalog.Catalog | Catalog.UnscopedHandler>>()
    const server = McpServer.layer({ name: "t", version: "1" }, layer)
    expectTypeOf(server).toEqualTypeOf<
      Layer.Layer<McpServer.McpServer | Catalog.Catalog, DefinitionError, Catalog.UnscopedHandler>
    >()
    // Not even within a scope.
    const built = Effect.scoped(Layer.build(server))
    expectTypeOf<Effect.Services<typeof built>>().toEqualTypeOf<Catalog.UnscopedHandler>()
    expectTypeOf<Extract<Layer.Services<typeof layer>, Scope.Scope>>().toEqualTypeOf<never>()
    const scoped = Tool.layer(tool, () => Effect.scoped(acquire))
    expectTypeOf(scoped).toEqualTypeOf<Layer.Layer<never, DefinitionError, Catalog.Catalog>>()
    expect(Layer.isLayer(scoped)).toBe(true)
  })

  it("may fail with the errors of the definitions", () => {
    const failing = Layer.effectDiscard(Effect.fail(new OutOfTea({ message: "none" })))
    const server = McpServer.layer({ name: "t", version: "1" }, failing)
    expectTypeOf<Layer.Error<typeof server>>().toEqualTypeOf<OutOfTea>()
    expect(Layer.isLayer(server)).toBe(true)
  })
})

describe("the principal", () => {
  it("is read from the application's type of a request", () => {
    interface HostRequest extends IncomingMessage {
      readonly user?: { readonly id: string }
    }
    const options: NodeHttp.HandlerOptions = { principal: (request: HostRequest) => request.user }
    expect(options.principal?.({ user: { id: "ada" } } as HostRequest)).toEqual({ id: "ada" })
    // @ts-expect-error a number is not a request
    const wrong: NodeHttp.HandlerOptions = { principal: (request: number) => ({ id: String(request) }) }
    expect(wrong).toBeDefined()
  })
})
