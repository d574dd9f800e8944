/** A server as its author writes it with Valibot, and mistakes that the compiler refuses. */
import { AsyncServer, withJsonSchema } from "skein"
import * as v from "valibot"
import { expectTypeOf } from "vitest"

const order = withJsonSchema(
  v.object({ name: v.string(), grams: v.optional(v.pipe(v.number(), v.integer()), 100) }),
  { type: "object", properties: { name: { type: "string" }, grams: { type: "integer" } }, required: ["name"] }
)

const total = withJsonSchema(v.object({ total: v.number() }), {
  type: "object",
  properties: { total: { type: "number" } },
  required: ["total"]
})

const people = withJsonSchema(v.object({ people: v.number(), kind: v.picklist(["green", "black"]) }), {
  type: "object",
  properties: { people: { type: "number" }, kind: { type: "string", enum: ["green", "black"] } },
  required: ["people", "kind"]
})

const mood = withJsonSchema(v.object({ mood: v.string(), cups: v.optional(v.pipe(v.string(), v.transform(Number))) }), {
  type: "object",
  properties: { mood: { type: "string" }, cups: { type: "string" } },
  required: ["mood"]
})

export const server = new AsyncServer({ name: "valibot", version: "1.0.0" })
  .tool("order", { input: order, output: total }, (input) => {
    expectTypeOf(input).toEqualTypeOf<{ name: string; grams: number }>()
    return { total: input.grams * 4 }
  })
  .tool("ask", {}, async (_, { elicit }) => {
    const answer = await elicit("For how many?", people)
    if (answer.action !== "accept") return answer.action
    expectTypeOf(answer.content).toEqualTypeOf<{ people: number; kind: "green" | "black" }>()
    return `${answer.content.people} ${answer.content.kind}`
  })
  .prompt("advise", { arguments: mood }, (args) => {
    expectTypeOf(args).toEqualTypeOf<{ mood: string; cups?: number | undefined }>()
    return `${args.mood} ${args.cups ?? 1}`
  })
  .template("cup://{id}", {
    name: "cup",
    variables: withJsonSchema(v.object({ id: v.pipe(v.string(), v.transform(Number)) }), { type: "object" })
  }, ({ id }) => {
    expectTypeOf(id).toEqualTypeOf<number>()
    return String(id + 1)
  })

export const mistakes = (): void => {
  // @ts-expect-error: `total` does not match `output`
  server.tool("t", { output: total }, () => ({ total: "4" }))
  // @ts-expect-error: there is no argument of that name
  server.tool("t", { input: order }, ({ nme }) => nme)
  // @ts-expect-error: pass the schema of the whole `input`
  server.tool("t", { input: { name: v.string() } }, () => "")
  // @ts-expect-error: `cups` of `arguments` does not read text
  server.prompt("p", { arguments: v.object({ cups: v.number() }) }, () => "")
  // @ts-expect-error: a form has no nested objects
  server.tool("t", {}, (_, { elicit }) => elicit("?", v.object({ place: v.object({ city: v.string() }) })))
}
