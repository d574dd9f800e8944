import { assert, describe, expect, it } from "@effect/vitest"
import * as UiMeta from "@skein/apps/UiMeta"
import * as UiPolicy from "@skein/apps/UiPolicy"
import * as Schema from "effect/Schema"

const grammar = /^(?:https?|wss?):\/\/(?:\*\.)?[a-z\d_[\]:.-]+(?::(?:\d+|\*))?(?:\/[^\s;,?#"<>\\^`{|}]*)?$/

describe("the policy of a page", () => {
  it("2026-01-26 · restrictive default · without metadata there is no network and no foreign resource", () => {
    const policy = UiPolicy.make({})
    assert.strictEqual(
      policy.contentSecurityPolicy,
      "default-src 'none'; script-src 'self' 'unsafe-inline'; style-src 'self' 'unsafe-inline'; img-src 'self' data:; " +
        "font-src 'self' data:; media-src 'self' data:; connect-src 'none'; frame-src 'none'; object-src 'none'; " +
        "base-uri 'self'; form-action 'none'"
    )
    assert.strictEqual(policy.allow, "")
  })

  it("2026-01-26 · contains the declared origins in their directives", () => {
    const { contentSecurityPolicy, csp } = UiPolicy.make({
      csp: {
        connectDomains: ["https://api.example.com", "wss://live.example.com:8443"],
        resourceDomains: ["https://*.cdn.example", "HTTPS://CDN.example/"],
        frameDomains: ["player.example"],
        baseUriDomains: ["https://base.example"]
      }
    })
    for (
      const part of [
        "connect-src https://api.example.com wss://live.example.com:8443;",
        "script-src 'self' 'unsafe-inline' https://*.cdn.example https://cdn.example;",
        "img-src 'self' data: https://*.cdn.example https://cdn.example;",
        "frame-src https://player.example;",
        "base-uri https://base.example;"
      ]
    ) assert.include(contentSecurityPolicy, part)
    assert.deepStrictEqual(csp.frameDomains, ["https://player.example"])
  })

  it.prop(
    "contains nothing but origins, whatever a server declares",
    [Schema.Array(Schema.Union([
      Schema.String,
      Schema.Literals([
        "*",
        "https:",
        "'unsafe-eval'",
        "https://a;script-src *",
        "//a",
        "https://a b",
        "https://[::1]:3"
      ])
    ]))],
    ([sources]) => {
      const { contentSecurityPolicy, csp, rejected } = UiPolicy.make({ csp: { connectDomains: sources } })
      for (const source of csp.connectDomains ?? []) assert.match(source, grammar)
      assert.lengthOf(contentSecurityPolicy.split(";"), 11)
      for (const { reason } of rejected) assert.oneOf(reason, ["invalid", "tooMany"])
    }
  )

  it("contains paths and names with underscores, and asks the host about the origin alone", () => {
    const asked: Array<string> = []
    const resourceDomains = [
      "https://My_Bucket.s3.example.com",
      "https://cdn.example/npm/Chart_1.js",
      "CDN.example/lib/%20a/",
      "https://cdn.example/a;script-src *",
      "https://cdn.example/a,b",
      "https://cdn.example/a?b",
      "https://cdn.example/a#b",
      "https://cdn.example/a b",
      "https://cdn.example/%2",
      "https://cdn.example/\u00e9",
      "https://evil.example/.safe.example"
    ]
    const { contentSecurityPolicy, csp, rejected } = UiPolicy.make({ csp: { resourceDomains } }, {
      allowSource: (source) => (asked.push(source), !source.endsWith("evil.example"))
    })
    assert.deepStrictEqual(csp.resourceDomains, [
      "https://my_bucket.s3.example.com",
      "https://cdn.example/npm/Chart_1.js",
      "https://cdn.example/lib/%20a/"
    ])
    assert.include(contentSecurityPolicy, `'unsafe-inline' ${csp.resourceDomains!.join(" ")};`)
    assert.deepStrictEqual(rejected.map(({ reason }) => reason), [
      ...Array.from({ length: 7 }, () => "invalid"),
      "refused"
    ])
    assert.deepStrictEqual(asked, [
      "https://my_bucket.s3.example.com",
      "https://cdn.example",
      "https://cdn.example",
      "https://evil.example"
    ])
  })

  it("leaves out what the host refuses, and lists it", () => {
    const policy = UiPolicy.make(
      {
        csp: { connectDomains: ["https://a.example", "https://b.example"], frameDomains: ["https://a.example", "*"] },
        permissions: { camera: {}, clipboardWrite: {} }
      },
      {
        allowSource: (source, member) => source === "https://a.example" && member === "connectDomains",
        allowPermission: (permission) => permission === "clipboardWrite"
      }
    )
    assert.deepStrictEqual<unknown>(policy.csp, { connectDomains: ["https://a.example"] })
    assert.strictEqual(policy.allow, "clipboard-write *")
    assert.deepStrictEqual(policy.rejected, [
      { member: "connectDomains", value: "\"https://b.example\"", reason: "refused" },
      { member: "frameDomains", value: "\"https://a.example\"", reason: "refused" },
      { member: "frameDomains", value: "\"*\"", reason: "invalid" },
      { member: "permissions", value: "camera", reason: "refused" }
    ])
  })

  it("grants no permission unless the host allows it", () => {
    assert.deepStrictEqual(UiPolicy.make({ permissions: { geolocation: {} } }).permissions, [])
  })

  it("contains 100 origins at most, in all directives together", () => {
    const domains = (name: string) => Array.from({ length: 80 }, (_, at) => `https://${name}${at}.example`)
    const meta = { csp: { connectDomains: domains("a"), resourceDomains: domains("b") } }
    const policy = UiPolicy.make(meta)
    assert.lengthOf(policy.csp.resourceDomains!, 20)
    assert.lengthOf(policy.rejected.filter(({ reason }) => reason === "tooMany"), 60)
  })
})

describe("the metadata", () => {
  it("is read leniently, and a malformed member counts as absent", () => {
    const read = (_meta: unknown) => UiMeta.ofTool({ _meta: _meta as UiMeta.WithMeta["_meta"] })
    const both = ["model", "app"]
    assert.deepStrictEqual<unknown>(read(undefined), { resourceUri: undefined, visibility: both })
    assert.deepStrictEqual<unknown>(read({ ui: null, "ui/resourceUri": "ui://old" }), {
      resourceUri: "ui://old",
      visibility: both
    })
    assert.deepStrictEqual<unknown>(read({ ui: { resourceUri: "https://a.example", visibility: ["app", 1] } }), {
      resourceUri: undefined,
      visibility: ["app"]
    })
    assert.deepStrictEqual<unknown>(
      read({ ui: { resourceUri: "ui://new" }, "ui/resourceUri": "ui://old" }).resourceUri,
      "ui://new"
    )
    assert.isFalse(UiMeta.isForModel({ _meta: { ui: { visibility: ["app"] } } }))
    assert.isFalse(UiMeta.isForApp({ _meta: { ui: { visibility: ["model"] } } }))
  })

  it("of a page is that of the contents, else that of the list", () => {
    const listed = {
      _meta: { ui: { prefersBorder: true, csp: { connectDomains: ["a", 1] }, permissions: { camera: 1 } } }
    }
    expect(UiMeta.ofResource({}, listed)).toEqual({
      prefersBorder: true,
      csp: { connectDomains: ["a"] },
      permissions: {}
    })
    expect(UiMeta.ofResource({ _meta: { ui: { domain: "d" } } }, listed)).toEqual({ domain: "d" })
    expect(UiMeta.ofResource(undefined)).toEqual({})
  })

  it("of a client declares the extension with the MIME type of pages", () => {
    const declares = (settings: unknown) =>
      UiMeta.isDeclared({ extensions: { "io.modelcontextprotocol/ui": settings } })
    assert.isTrue(declares({ mimeTypes: ["text/html; profile=\"mcp-app\""] }))
    assert.isTrue(declares({}))
    for (const settings of [{ mimeTypes: [] }, { mimeTypes: "text/html" }, null, []]) assert.isFalse(declares(settings))
    assert.isFalse(UiMeta.isDeclared({ extensions: [] }))
    assert.isFalse(UiMeta.isDeclared(undefined))
  })
})
