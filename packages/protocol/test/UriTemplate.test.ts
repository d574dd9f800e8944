import * as UriTemplate from "@skein/protocol/UriTemplate"
import { assert, describe, it } from "@effect/vitest"
import * as Result from "effect/Result"
import * as Schema from "effect/Schema"

const make = (text: string) => Result.getOrThrow(UriTemplate.make(text))
const expand = (text: string, values: { readonly [name: string]: UriTemplate.Value }) =>
  UriTemplate.expand(make(text), values)
const match = (text: string, uri: string): object | undefined => {
  const found = UriTemplate.match(make(text), uri)
  return found === undefined ? undefined : { ...found }
}
const round = (text: string, values: { readonly [name: string]: UriTemplate.Value }): object | undefined => {
  const template = make(text)
  const found = UriTemplate.match(template, UriTemplate.expand(template, values))
  return found === undefined ? undefined : { ...found }
}

describe("expanding", () => {
  // The variables and results of RFC 6570, section 3.2, for the supported operators.
  const values = {
    count: ["one", "two", "three"],
    dub: "me/too",
    hello: "Hello World!",
    half: "50%",
    var: "value",
    who: "fred",
    base: "http://example.com/home/",
    path: "/foo/bar",
    list: ["red", "green", "blue"],
    v: "6",
    x: "1024",
    y: "768",
    empty: "",
    empty_list: [],
    undef: undefined
  }

  it("RFC 6570, 3.2.2 · expands simple strings", () => {
    for (
      const [template, uri] of [
        ["{var}", "value"],
        ["{hello}", "Hello%20World%21"],
        ["{half}", "50%25"],
        ["O{empty}X", "OX"],
        ["O{undef}X", "OX"],
        ["{x,y}", "1024,768"],
        ["{x,hello,y}", "1024,Hello%20World%21,768"],
        ["?{x,empty}", "?1024,"],
        ["?{x,undef}", "?1024"],
        ["{list}", "red,green,blue"],
        ["{list*}", "red,green,blue"]
      ] as const
    ) assert.strictEqual(expand(template, values), uri, template)
  })

  it("RFC 6570, 3.2.3 · expands reserved strings", () => {
    for (
      const [template, uri] of [
        ["{+var}", "value"],
        ["{+hello}", "Hello%20World!"],
        ["{+half}", "50%25"],
        ["{base}index", "http%3A%2F%2Fexample.com%2Fhome%2Findex"],
        ["{+base}index", "http://example.com/home/index"],
        ["O{+empty}X", "OX"],
        ["{+path}/here", "/foo/bar/here"],
        ["here?ref={+path}", "here?ref=/foo/bar"],
        ["{+x,hello,y}", "1024,Hello%20World!,768"],
        ["{+list}", "red,green,blue"],
        ["{+list*}", "red,green,blue"]
      ] as const
    ) assert.strictEqual(expand(template, values), uri, template)
  })

  it("RFC 6570, 3.2.4 · expands fragments", () => {
    for (
      const [template, uri] of [
        ["{#var}", "#value"],
        ["{#hello}", "#Hello%20World!"],
        ["foo{#empty}", "foo#"],
        ["foo{#undef}", "foo"],
        ["{#x,hello,y}", "#1024,Hello%20World!,768"],
        ["{#list*}", "#red,green,blue"]
      ] as const
    ) assert.strictEqual(expand(template, values), uri, template)
  })

  it("RFC 6570, 3.2.6 · expands path segments", () => {
    for (
      const [template, uri] of [
        ["{/who}", "/fred"],
        ["{/half,who}", "/50%25/fred"],
        ["{/who,dub}", "/fred/me%2Ftoo"],
        ["{/var,empty}", "/value/"],
        ["{/var,undef}", "/value"],
        ["{/var,x}/here", "/value/1024/here"],
        ["{/list}", "/red,green,blue"],
        ["{/list*}", "/red/green/blue"]
      ] as const
    ) assert.strictEqual(expand(template, values), uri, template)
  })

  it("RFC 6570, 3.2.8 and 3.2.9 · expands queries and their continuation", () => {
    for (
      const [template, uri] of [
        ["{?who}", "?who=fred"],
        ["{?half}", "?half=50%25"],
        ["{?x,y}", "?x=1024&y=768"],
        ["{?x,y,empty}", "?x=1024&y=768&empty="],
        ["{?x,y,undef}", "?x=1024&y=768"],
        ["{?list}", "?list=red,green,blue"],
        ["{?list*}", "?list=red&list=green&list=blue"],
        ["{?empty_list}", ""],
        ["?fixed=yes{&x}", "?fixed=yes&x=1024"],
        ["{&x,y,empty}", "&x=1024&y=768&empty="],
        ["{&list*}", "&list=red&list=green&list=blue"]
      ] as const
    ) assert.strictEqual(expand(template, values), uri, template)
  })

  it("RFC 6570, 3.1 · percent-encodes literals that a URI must not contain", () => {
    assert.strictEqual(expand("a://é b/%c3%a9/100%", {}), "a://%C3%A9%20b/%C3%A9/100%25")
  })

  it("RFC 6570, 3.2.3 · keeps percent-encoded text with + and #", () => {
    assert.strictEqual(expand("{+a}{?a2}", { a: "x%2Fy%zz", a2: "%2F" }), "x%2Fy%25zz?a2=%252F")
  })

  it("writes numbers and booleans as text, and ignores inherited members", () => {
    assert.strictEqual(expand("{a}/{b}{?toString}", { a: 1, b: false }), "1/false")
  })

  it("writes a lone surrogate as the replacement character", () => {
    assert.strictEqual(expand("{a}", { a: "x\ud800" }), "x%EF%BF%BD")
  })
})

describe("matching", () => {
  it("matches a template without variables only with itself", () => {
    assert.deepStrictEqual(match("a://b", "a://b"), {})
    for (const uri of ["a://", "a://b/", "a://bb", "", "x"]) assert.isUndefined(match("a://b", uri), uri)
    assert.deepStrictEqual(match("", ""), {})
    assert.isUndefined(match("", "x"))
  })

  it("{a} matches at least one character, none of / ? #", () => {
    assert.deepStrictEqual(match("users://{id}/profile", "users://42/profile"), { id: "42" })
    assert.deepStrictEqual(match("users://{id}", "users://a@b.com,c"), { id: "a@b.com,c" })
    for (const uri of ["users://", "users://a/b", "users://a?b", "users://a#b"]) {
      assert.isUndefined(match("users://{id}", uri), uri)
    }
  })

  it("{a} after a literal ? does not match & either", () => {
    assert.deepStrictEqual(match("s://x?q={q}&n={n}", "s://x?q=a&n=1"), { q: "a", n: "1" })
    assert.isUndefined(match("s://x?q={q}&n={n}", "s://x?q=a&n=1&evil=2"))
  })

  it("{a,b} and {a*} match lists with commas", () => {
    assert.deepStrictEqual(match("geo://{lat,lon}", "geo://1.5,-2"), { lat: "1.5", lon: "-2" })
    for (const uri of ["geo://1", "geo://1,2,3", "geo://1,"]) assert.isUndefined(match("geo://{lat,lon}", uri), uri)
    assert.deepStrictEqual(match("t://{tags*}", "t://a,b,c"), { tags: ["a", "b", "c"] })
    assert.deepStrictEqual(match("t://{first,rest*}", "t://a,b,c"), { first: "a", rest: ["b", "c"] })
  })

  it("a variable matches the shortest text, and the end of the template the end of the URI", () => {
    assert.deepStrictEqual(match("{a}-{b}", "x-y-z"), { a: "x", b: "y-z" })
    assert.deepStrictEqual(match("{name}.json", "a.json.json"), { name: "a.json" })
    assert.deepStrictEqual(match("{name}.json{?v}", "a.json.json?v=1"), { name: "a.json", v: "1" })
    assert.deepStrictEqual(match("{a}aab{b}", "aaaabaabx"), { a: "aa", b: "aabx" })
    assert.deepStrictEqual(match("{a}--", "----"), { a: "--" })
  })

  it("{+a} crosses segments, and the part after it is matched from the right", () => {
    assert.deepStrictEqual(match("file:///{+path}", "file:///a/b?c#d"), { path: "a/b?c#d" })
    assert.deepStrictEqual(match("repo://{+path}/{name}", "repo://a/b/c"), { path: "a/b", name: "c" })
    assert.deepStrictEqual(match("repo://{+path}/{dir}/x-{name}.md", "repo://a/b/c/x-d.md"), {
      path: "a/b",
      dir: "c",
      name: "d"
    })
    assert.deepStrictEqual(match("repo://{owner}/{+path}", "repo://a/b/c"), { owner: "a", path: "b/c" })
    assert.deepStrictEqual(match("d://{+left}...{+right}", "d://a/b...c/d"), { left: "a/b", right: "c/d" })
    assert.deepStrictEqual(match("d://{+left}...{+right}", "d://a...b...c"), { left: "a", right: "b...c" })
    assert.deepStrictEqual(match("{+a,b}", "x/y,z"), { a: "x/y", b: "z" })
    for (const uri of ["repo://a", "repo:///a", "repo://a/"]) {
      assert.isUndefined(match("repo://{+path}/{name}", uri), uri)
    }
  })

  it("{/a} matches a segment or nothing, {/a,b} up to two, {/a*} any number", () => {
    assert.deepStrictEqual(match("r://h{/a}", "r://h/x"), { a: "x" })
    assert.deepStrictEqual(match("r://h{/a}", "r://h/"), { a: "" })
    assert.deepStrictEqual(match("r://h{/a}", "r://h"), {})
    assert.isUndefined(match("r://h{/a}", "r://h/x/y"))
    assert.deepStrictEqual(match("r://h{/a,b}", "r://h/x/y"), { a: "x", b: "y" })
    assert.deepStrictEqual(match("r://h{/a,b}", "r://h/x"), { a: "x" })
    assert.deepStrictEqual(match("r://{h}{/p*}", "r://h/x/y/z"), { h: "h", p: ["x", "y", "z"] })
    assert.deepStrictEqual(match("r://{h}{/p*}", "r://h"), { h: "h" })
    assert.deepStrictEqual(match("r://{h}{/p*}/meta", "r://h/a/meta/meta"), { h: "h", p: ["a", "meta"] })
    assert.deepStrictEqual(match("r://h{/a}/{b}", "r://h/y"), { b: "y" })
    assert.isUndefined(match("r://h{/a*}", "r://hx"))
    assert.isUndefined(match("r://h{/a*}", "r://h/x?y"))
  })

  it("{?a,b} matches optional parameters in any order, and ignores others", () => {
    const template = "s://items{?q,limit}"
    assert.deepStrictEqual(match(template, "s://items?q=a&limit=5"), { q: "a", limit: "5" })
    assert.deepStrictEqual(match(template, "s://items?limit=5&x=1&q=a"), { q: "a", limit: "5" })
    assert.deepStrictEqual(match(template, "s://items?q=a=b"), { q: "a=b" })
    assert.deepStrictEqual(match(template, "s://items?q"), { q: "" })
    for (const uri of ["s://items", "s://items?", "s://items?&", "s://items?Q=a"]) {
      assert.deepStrictEqual(match(template, uri), {}, uri)
    }
    assert.deepStrictEqual(match("s://{+url}{?q}", "s://a/b?q=1?2"), { url: "a/b", q: "1?2" })
  })

  it("matches a repeated parameter as a list with *, and not without", () => {
    assert.deepStrictEqual(match("s://x{?t*}", "s://x?t=a&t=b"), { t: ["a", "b"] })
    assert.deepStrictEqual(match("s://x{?t*}", "s://x?t=a"), { t: ["a"] })
    assert.isUndefined(match("s://x{?t}", "s://x?t=a&t=b"))
  })

  it("{&a} matches parameters after the query of the template", () => {
    assert.deepStrictEqual(match("s://x?v=1&w=2{&a,b}", "s://x?v=1&w=2&b=4&a=3"), { a: "3", b: "4" })
    assert.deepStrictEqual(match("s://x?v=1{&a}", "s://x?v=1"), {})
    assert.isUndefined(match("s://x?v=1{&a}", "s://x?v=2&a=3"))
    assert.deepStrictEqual(match("s://x?v={v}{&a}", "s://x?v=1&a=3"), { v: "1", a: "3" })
    assert.deepStrictEqual(match("s://x{?a}{&b}", "s://x?b=2&a=1"), { a: "1", b: "2" })
  })

  it("{#a} matches the fragment or nothing; without it a URI with a fragment does not match", () => {
    assert.deepStrictEqual(match("s://x{#f}", "s://x#a/b?c#d"), { f: "a/b?c#d" })
    assert.deepStrictEqual(match("s://x{#f}", "s://x#"), { f: "" })
    assert.deepStrictEqual(match("s://x{#f}", "s://x"), {})
    assert.deepStrictEqual(match("s://x{?q}{#f}", "s://x?q=1#2"), { q: "1", f: "2" })
    for (const template of ["s://x", "s://{x}", "s://x{?q}"]) {
      assert.isUndefined(match(template, "s://x?q=1#2"), template)
    }
  })

  it("decodes values, and matches a URI in any percent-encoding", () => {
    assert.deepStrictEqual(match("f:///{+p}", "f:///a%20b/%C3%A9"), { p: "a b/é" })
    assert.deepStrictEqual(match("f:///{+p}", "f:///a b/é"), { p: "a b/é" })
    assert.deepStrictEqual(match("f:///{n}", "f:///a%2fb"), { n: "a/b" })
    assert.deepStrictEqual(match("f://é/{n}", "f://%c3%a9/x"), { n: "x" })
    assert.deepStrictEqual(match("f://%c3%a9/{n}", "f://é/x"), { n: "x" })
    assert.deepStrictEqual(match("f://x{?q}", "f://x?q=a+b%2B"), { q: "a+b+" })
  })

  it("takes a % outside percent-encoding literally, and does not match invalid UTF-8", () => {
    assert.deepStrictEqual(match("f:///{n}", "f:///100%"), { n: "100%" })
    assert.deepStrictEqual(match("f:///{n}", "f:///%zz%4"), { n: "%zz%4" })
    for (const uri of ["f:///%ff", "f:///%C3", "f:///%C3%28", "f:///%ED%A0%80"]) {
      assert.isUndefined(match("f:///{n}", uri), uri)
    }
    assert.isUndefined(match("f:///{n}{?q}", "f:///x?q=%ff"))
    assert.deepStrictEqual(match("f:///{n}", "f:///\ud800"), { n: "\ufffd" })
  })

  it("returns an object without a prototype", () => {
    const found = UriTemplate.match(make("x://{__proto__}{?constructor}"), "x://a")!
    assert.isNull(Object.getPrototypeOf(found))
    assert.strictEqual(found["__proto__"], "a")
    assert.isUndefined(found["constructor"])
  })
})

const Text = Schema.Array(
  Schema.Literals([
    "a",
    "b",
    "é",
    "日",
    "😀",
    " ",
    "%",
    "/",
    "?",
    "#",
    "&",
    "=",
    "+",
    ",",
    ".",
    "!",
    "(",
    "\"",
    "\n",
    "%41"
  ])
)
  .check(Schema.isMinLength(1))
const spaced = (characters: ReadonlyArray<string>) => characters.join("")
const without = (text: string, forbidden: RegExp) => text.replace(forbidden, "") || "x"

describe("match(expand(values)) returns the values", () => {
  it.prop(
    "for simple expressions, with any texts",
    [Text, Text, Schema.Array(Text).check(Schema.isMinLength(1))],
    ([a, b, c]) => {
      const values = { a: without(spaced(a), /\./g), b: spaced(b), c: c.map(spaced) }
      // Literals of reserved characters do not occur in a value. A dot does, so `a` has none.
      for (const template of ["x://{a}/{b}/{c*}", "{b}/{a}.x/{c*}", "x:{a,b,c*}"]) {
        assert.deepStrictEqual(round(template, values), values, template)
      }
    }
  )

  it.prop(
    "for path segments and queries, with any texts",
    [Text, Schema.Array(Text), Text, Schema.Array(Text)],
    ([a, p, q, t]) => {
      const values = { a: spaced(a), p: p.map(spaced), q: spaced(q), t: t.map(spaced) }
      const expected: Record<string, unknown> = { ...values }
      if (p.length === 0) delete expected["p"]
      if (t.length === 0) delete expected["t"]
      for (const template of ["x://{a}{/p*}{?q,t*}", "x://{a}{/p*}/end?v=1{&t*,q}"]) {
        assert.deepStrictEqual(round(template, values), expected, template)
      }
    }
  )

  it.prop(
    "for reserved expressions and fragments, with texts without a percent sign",
    [Text, Text, Text],
    ([a, b, f]) => {
      const values = { a: without(spaced(a), /%/g), b: spaced(b), f: without(spaced(f), /%/g) }
      assert.deepStrictEqual(round("x://{+a}/{b}", values), { a: values.a, b: values.b })
      assert.deepStrictEqual(round("x://{b}/{+a}", values), { a: values.a, b: values.b })
      assert.deepStrictEqual(round("x://{b}{#f}", values), { b: values.b, f: values.f })
    }
  )

  // The match of a regular expression with backtracking, which is fast for these short texts.
  const pattern = (template: string): RegExp =>
    new RegExp(`^${
      template.replace(
        /\{[^}]*\}|[^{]+/g,
        (part) => part.startsWith("{+") ? "[^]+" : part.startsWith("{") ? "[^/?#]+" : part
      )
    }$`)

  it.prop(
    "where a regular expression with backtracking matches, for templates without {/a}",
    [
      Schema.Array(Schema.Literals(["a", "b", "ab", "/", "-", "{v}", "{w}", "{x}", "{+y}", "{+z}"])),
      Schema.Array(Schema.Literals(["a", "b", "ab", "/", "-"]))
    ],
    ([pieces, characters]) => {
      const made = UriTemplate.make(pieces.join(""))
      if (Result.isFailure(made)) return
      const uri = characters.join("")
      assert.strictEqual(UriTemplate.match(made.success, uri) !== undefined, pattern(made.success.text).test(uri))
    },
    { arbitrary: { runs: 3000 } }
  )

  const pieces = [
    "a",
    "é",
    "{",
    "}",
    "{a}",
    "{b}",
    "{+c}",
    "{/d}",
    "{/e*}",
    "{?f,g*}",
    "{&h}",
    "{#i}",
    "/",
    "?",
    "#",
    "&",
    "=",
    ",",
    "%",
    "%41",
    "%ff",
    " "
  ]
  it.prop(
    "does not throw for any template and URI, and a match expands to a URI that matches again",
    [Schema.Array(Schema.Literals(pieces)), Schema.Array(Schema.Literals([...pieces, "x", "y"])), Schema.String],
    ([template, uri, text]) => {
      assert.isTrue(Result.isResult(UriTemplate.make(text)))
      const made = UriTemplate.make(template.join(""))
      if (Result.isFailure(made)) return assert.isString(made.failure)
      UriTemplate.match(made.success, text)
      const found = UriTemplate.match(made.success, uri.join(""))
      if (found === undefined) return
      for (const name of Object.keys(found)) assert.include(made.success.names, name)
      assert.isDefined(UriTemplate.match(made.success, UriTemplate.expand(made.success, found)))
    },
    { arbitrary: { runs: 1000 } }
  )
})
