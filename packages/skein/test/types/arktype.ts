/** A server as its author writes it with ArkType, and mistakes that the compiler refuses. */
import { type } from "arktype"
import { AsyncServer } from "skein"
import { expectTypeOf } from "vitest"

export const server = new AsyncServer({ name: "arktype", version: "1.0.0" })
  .tool("order", {
    input: type({ name: "string", grams: "number.integer = 100", "organic?": "boolean" }),
    output: type({ total: "number" })
  }, (input) => {
    expectTypeOf(input.name).toEqualTypeOf<string>()
    expectTypeOf(input.grams).toEqualTypeOf<number>()
    expectTypeOf(input.organic).toEqualTypeOf<boolean | undefined>()
    return { total: input.grams * 4 }
  })
  .tool("ask", {}, async (_, { elicit }) => {
    const answer = await elicit("For how many?", type({ people: "number.integer >= 1", kind: "'green' | 'black'" }))
    if (answer.action !== "accept") return answer.action
    expectTypeOf(answer.content).toEqualTypeOf<{ people: number; kind: "green" | "black" }>()
    return `${answer.content.people} ${answer.content.kind}`
  })
  .prompt("advise", { arguments: type({ mood: "string", "cups?": "string.integer.parse" }) }, (args) => {
    expectTypeOf(args.mood).toEqualTypeOf<string>()
    expectTypeOf(args.cups).toEqualTypeOf<number | undefined>()
    return `${args.mood} ${args.cups ?? 1}`
  })
  .template("cup://{id}", { name: "cup", variables: type({ id: "string.integer.parse" }) }, ({ id }) => {
    expectTypeOf(id).toEqualTypeOf<number>()
    return String(id + 1)
  })

export const mistakes = (): void => {
  // @ts-expect-error: `total` does not match `output`
  server.tool("t", { output: type({ total: "number" }) }, () => ({ total: "4" }))
  // @ts-expect-error: there is no argument of that name
  server.tool("t", { input: type({ name: "string" }) }, ({ nme }) => nme)
  // @ts-expect-error: the `input` of a tool must be an object
  server.tool("t", { input: type("string") }, () => "")
  // @ts-expect-error: `cups` of `arguments` does not read text
  server.prompt("p", { arguments: type({ cups: "number" }) }, () => "")
  // @ts-expect-error: the template has no variable of that name
  server.template("tea://{id}", { name: "tea", variables: type({ nme: "string" }) }, () => "")
  // @ts-expect-error: a form has no nested objects
  server.tool("t", {}, (_, { elicit }) => elicit("?", type({ place: { city: "string" } })))
}
