import { describe, expect, it } from "@effect/vitest"
import * as Effect from "effect/Effect"
import * as Schema from "effect/Schema"
import {
  encode,
  forCookie,
  forHeader,
  forPath,
  forQuery,
  type Serialization
} from "../src/internal/arguments/serialize.ts"

const of = (style: Serialization["style"], explode: boolean, more: Partial<Serialization> = {}): Serialization => ({
  key: "color",
  style,
  explode,
  allowReserved: false,
  ...more
})

const list = ["blue", "black", "brown"]
const object = { R: 100, G: 200, B: 150 }
const query = (serialization: Serialization, value: unknown) =>
  forQuery(serialization, value).map(([name, text]) => `${name}=${text}`).join("&")

// OpenAPI 3.1, "Style Examples".
describe("the style examples of the specification", () => {
  it.each(
    [
      ["matrix", false, ";color=blue", ";color=blue,black,brown", ";color=R,100,G,200,B,150"],
      ["matrix", true, ";color=blue", ";color=blue;color=black;color=brown", ";R=100;G=200;B=150"],
      ["label", false, ".blue", ".blue,black,brown", ".R,100,G,200,B,150"],
      ["label", true, ".blue", ".blue.black.brown", ".R=100.G=200.B=150"],
      ["simple", false, "blue", "blue,black,brown", "R,100,G,200,B,150"],
      ["simple", true, "blue", "blue,black,brown", "R=100,G=200,B=150"]
    ] as const
  )("path, %s, explode %s", (style, explode, ...expected) => {
    expect(["blue", list, object].map((value) => forPath(of(style, explode), value))).toEqual(expected)
  })

  it.each(
    [
      ["form", false, "color=blue", "color=blue,black,brown", "color=R,100,G,200,B,150"],
      ["form", true, "color=blue", "color=blue&color=black&color=brown", "R=100&G=200&B=150"],
      ["spaceDelimited", false, "color=blue", "color=blue%20black%20brown", "color=R%20100%20G%20200%20B%20150"],
      ["pipeDelimited", false, "color=blue", "color=blue%7Cblack%7Cbrown", "color=R%7C100%7CG%7C200%7CB%7C150"],
      [
        "deepObject",
        true,
        "color=blue",
        "color%5B0%5D=blue&color%5B1%5D=black&color%5B2%5D=brown",
        "color%5BR%5D=100&color%5BG%5D=200&color%5BB%5D=150"
      ]
    ] as const
  )("query, %s, explode %s", (style, explode, ...expected) => {
    expect(["blue", list, object].map((value) => query(of(style, explode), value))).toEqual(expected)
  })

  it("header and cookie", () => {
    expect(["blue", list, object].map((value) => forHeader(of("simple", false), value)))
      .toEqual(["blue", "blue,black,brown", "R,100,G,200,B,150"])
    expect(forHeader(of("simple", true), object)).toBe("R=100,G=200,B=150")
    expect(["a;b", list].map((value) => forCookie(of("form", true), value))).toEqual([
      "color=a%3Bb",
      "color=blue,black,brown"
    ])
  })
})

describe("a query parameter", () => {
  it("has no pair for an empty list and an empty object", () => {
    for (const style of ["form", "deepObject", "pipeDelimited"] as const) {
      expect([[], {}].map((value) => query(of(style, false), value))).toEqual(["", ""])
    }
  })

  it("writes nested values of a list as JSON, and those of deepObject by their paths", () => {
    expect(query(of("form", true), [{ a: 1 }])).toBe(`color=${encode("{\"a\":1}")}`)
    expect(query(of("deepObject", true), { a: { b: [1] } })).toBe("color%5Ba%5D%5Bb%5D%5B0%5D=1")
  })

  it("leaves reserved characters with allowReserved, but none that ends the parameter", () => {
    expect(query(of("form", true, { allowReserved: true }), "a/b:c?d@e,f&g=h#i+j k%l"))
      .toBe("color=a/b:c?d@e,f%26g%3Dh%23i%2Bj%20k%25l")
  })
})

describe("every text", () => {
  const wellFormed = (text: string) => text.toWellFormed()

  it.effect.prop(
    "is read back from a query",
    { key: Schema.String, value: Schema.String },
    ({ key, value }) =>
      Effect.sync(() => {
        for (const allowReserved of [false, true]) {
          const text = query(of("form", true, { key, allowReserved }), value)
          expect([...new URLSearchParams(text)]).toEqual([[wellFormed(key), wellFormed(value)]])
        }
      })
  )

  it.effect.prop(
    "is read back from a list of a query",
    { values: Schema.Array(Schema.String) },
    ({ values }) =>
      Effect.sync(() => {
        const text = query(of("form", true), values)
        expect(new URLSearchParams(text).getAll("color")).toEqual(values.map(wellFormed))
        const [, joined = ""] = /^color=(.*)$/.exec(query(of("form", false), values)) ?? []
        if (values.length > 0) expect(joined.split(",").map(decodeURIComponent)).toEqual(values.map(wellFormed))
      })
  )

  it.effect.prop("is one segment of a path", { value: Schema.String }, ({ value }) =>
    Effect.sync(() => {
      const text = forPath(of("simple", false), value)
      expect(text).toMatch(/^[\w.~%-]*$/)
      expect(decodeURIComponent(text)).toBe(wellFormed(value))
    }))
})
