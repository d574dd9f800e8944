import * as UriTemplate from "@skein/protocol/UriTemplate"
import { assert, describe, it } from "@effect/vitest"
import * as Result from "effect/Result"
import { matchUri } from "../src/internal/uriTemplate/matchUri.ts"
import { normalize } from "../src/internal/uriTemplate/percentEncoding.ts"
import * as Timed from "./timed.ts"

const make = (text: string) => Result.getOrThrow(UriTemplate.make(text))
const refusal = (text: string) => {
  const result = UriTemplate.make(text)
  return Result.isFailure(result) ? result.failure : undefined
}
/** Matches a URI of any length. */
const matchUnbounded = (template: UriTemplate.UriTemplate, uri: string) => matchUri(template.plan, normalize(uri))
const match = (text: string, uri: string): object | undefined => {
  const found = UriTemplate.match(make(text), uri)
  return found === undefined ? undefined : { ...found }
}

describe("make refuses", () => {
  it("a malformed template", () => {
    for (
      const text of [
        "{",
        "}",
        "{a",
        "a}",
        "{}",
        "{a,}",
        "{ a }",
        "{a b}",
        "{a{b}}",
        "{+}",
        "{a..b}",
        "{.}",
        "{é}",
        "{a*b}",
        "{a**}",
        "{-x}"
      ]
    ) {
      assert.isString(refusal(text), text)
    }
    assert.deepStrictEqual(make("{a.b_1%20}").names, ["a.b_1%20"])
  })

  it("unsupported operators, and prefixes", () => {
    for (const text of ["{.a}", "{;a}", "{=a}", "{,a}", "{!a}", "{@a}", "{|a}"]) {
      assert.include(refusal(text), "operator", text)
    }
    assert.include(refusal("{a:3}"), "prefixes")
  })

  it("a variable that occurs twice, and a * on a variable that is not the last", () => {
    assert.isString(refusal("{a}/{a}"))
    assert.isString(refusal("{a}{?a}"))
    for (const text of ["{a*,b}", "{+a*,b}", "{/a*,b}", "{#a*,b}"]) assert.isString(refusal(text), text)
    assert.isUndefined(refusal("{?a*,b*}"))
  })

  it("adjacent expressions without a literal between them", () => {
    for (const text of ["{a}{b}", "{a}{+b}", "{+a}{b}", "{+a}{/b}", "{/a}{b}", "{/a}{/b}", "{+a}{+b}"]) {
      assert.include(refusal(text), "literal between", text)
    }
    for (const text of ["{a}{/b}", "{a}{?b}", "{+a}{?b}", "{/a}{?b}", "{a}{#b}", "{?a}{#b}", "{?a}{&b}"]) {
      assert.isUndefined(refusal(text), text)
    }
  })

  it("a simple expression between two that cross segments", () => {
    assert.isString(refusal("{+a}/{b}/{+c}"))
    assert.isString(refusal("{/a}/{b}/{+c}"))
    assert.isUndefined(refusal("{a}/{+b}/x{/c}/{d}"))
  })

  it("anything but a fragment after a query, and anything after a fragment", () => {
    for (
      const text of [
        "{?a}x",
        "{?a}{b}",
        "{?a}{?b}",
        "{&a}{?b}",
        "{#a}x",
        "{#a}{b}",
        "{#a}{#b}",
        "{#a}{?b}",
        "x?y{?a}",
        "x#y{#a}"
      ]
    ) {
      assert.isString(refusal(text), text)
    }
  })
})

describe("the bounds", () => {
  it("refuse a template of more than 8,192 characters", () => {
    assert.isUndefined(refusal("x".repeat(8192)))
    assert.include(refusal("x".repeat(8193)), "8192")
  })

  it("refuse a template of more than 64 variables", () => {
    const of = (count: number) => Array.from({ length: count }, (_, i) => `{v${i}}`).join("/")
    assert.isUndefined(refusal(of(64)))
    assert.include(refusal(of(65)), "64")
  })

  it("do not match a URI of more than 16,384 characters", () => {
    assert.isDefined(match("{+a}", "x".repeat(16_384)))
    assert.isUndefined(match("{+a}", "x".repeat(16_385)))
  })

  const many = (separator: string, operator = "") =>
    Array.from({ length: 64 }, (_, i) => `{${operator}v${i}}`).join(separator)
  const templates = [
    "{a}",
    "{+a}",
    "x://{a}/{b}",
    "{+a}/{b}",
    "{a*}",
    "{/a*}",
    "{?a*}",
    "x{?a,b*}{#c}",
    "{a}{/b*}/x",
    many("/"),
    many(","),
    many("a"),
    many("aa", "+"),
    many("/", "/"),
    `{${Array.from({ length: 64 }, (_, i) => `v${i}`).join(",")}}`,
    `{a}${"a".repeat(8000)}b{b}`,
    `{+a}b${"a".repeat(8000)}{b}`,
    `{+a}${"ab".repeat(4000)}{+b}`,
    `{+a}${"a".repeat(8000)}b`
  ]
  const uris = (size: number) =>
    ["a", "/", ",", "%", "%41", "a/", "a,", "?", "&", "?a&", "a=", "#", "ab", "%ff", "é", "\ud800"].map((piece) =>
      piece.repeat(Math.ceil(size / piece.length)).slice(0, size)
    )

  it("CVE-2026-0621 · refuse a hostile URI of 1 MB in linear time, for every template", () => {
    for (const template of templates.map((text) => make(text))) {
      for (const uri of uris(1_048_576)) assert.isUndefined(Timed.linear(() => UriTemplate.match(template, uri)))
    }
  })

  it("CVE-2026-0621 · match a hostile URI of any length in linear time", () => {
    for (const template of templates.map((text) => make(text))) {
      for (const uri of [...uris(120_000), "x?" + "a=&".repeat(40_000), "x?" + "b=&".repeat(40_000)]) {
        Timed.linear(() => matchUnbounded(template, uri))
        Timed.linear(() => matchUnbounded(template, `x://${uri}`))
      }
    }
  })

  it("CVE-2026-0621 · search 1 MB for a literal in linear time", () => {
    const uri = "a".repeat(1_048_576)
    for (
      const template of [
        `{a}${"a".repeat(8000)}b{b}`,
        `{+a}b${"a".repeat(8000)}{b}`,
        many("a"),
        many("aa", "+"),
        "{+a}/{b}"
      ]
    ) {
      const compiled = make(template)
      Timed.linear(() => matchUnbounded(compiled, uri))
    }
  })

  it("normalize a hostile URI once for 10,000 templates", () => {
    const templates = Array.from({ length: 10_000 }, (_, i) => make(`x${i}://{id}/{+path}{?q*}`))
    for (const uri of [...uris(16_384), "x?" + "q=&".repeat(5_400)]) {
      Timed.linear(() => {
        for (const template of templates) assert.isUndefined(UriTemplate.match(template, uri))
      })
    }
  })

  it("do not return the match of one URI for the next one", () => {
    const template = make("x:{a}")
    for (const [uri, a] of [["x:é", "é"], ["x:%c3%a9", "é"], ["x:e", "e"], ["x:é", "é"], ["x:e", "e"]] as const) {
      assert.deepStrictEqual({ ...UriTemplate.match(template, uri) }, { a })
    }
    assert.isUndefined(UriTemplate.match(template, ""))
  })

  it("parse or refuse a hostile template of 8,192 characters in linear time", () => {
    for (
      const text of [
        "{".repeat(200_000),
        "{a".repeat(100_000),
        "{a}".repeat(70_000),
        `{${"a,".repeat(100_000)}a}`,
        `{${"a.".repeat(100_000)}}`,
        "%".repeat(200_000),
        "é".repeat(200_000),
        "a}".repeat(100_000)
      ]
    ) {
      Timed.linear(() => UriTemplate.make(text.slice(0, 8_192)))
    }
  })
})
