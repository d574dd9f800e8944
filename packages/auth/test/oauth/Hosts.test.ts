/** Which hosts are this computer, for each part that decides by it, and how texts are written in pages and forms. */
import { assert, describe, it } from "@effect/vitest"
import * as Redacted from "effect/Redacted"
import { render } from "../../src/client/node/loopbackServer.ts"
import { isSecure } from "../../src/client/protocol/urls.ts"
import { checkAddress } from "../../src/server/tokens/fetchDocument.ts"
import { redirectProblem } from "../../src/proxy/proxyEngine.ts"
import { resolve } from "../../src/proxy/resolveOptions.ts"
import { escapeHtml, formEncode } from "../../src/shared/web.ts"

/** Hosts of URLs: whether they are on loopback, and whether a redirect URI may have them. */
const hosts: ReadonlyArray<readonly [host: string, loopback: boolean, redirect: boolean]> = [
  ["localhost", true, true],
  ["LOCALHOST", true, true],
  ["127.0.0.1", true, true],
  ["127.1", true, true],
  ["0x7f000001", true, true],
  ["[::1]", true, true],
  ["[0:0:0:0:0:0:0:1]", true, true],
  ["127.0.0.2", true, false],
  ["127.255.255.254", true, false],
  ["localhost.", false, false],
  ["tea.localhost", false, false],
  ["localhost.example", false, false],
  ["127.0.0.1.example", false, false],
  ["128.0.0.1", false, false],
  ["0.0.0.0", false, false],
  ["10.0.0.1", false, false],
  ["[::]", false, false],
  ["[::2]", false, false],
  ["[::ffff:127.0.0.1]", true, false]
]

const succeeds = (check: () => unknown): boolean => {
  try {
    check()
    return true
  } catch {
    return false
  }
}

const proxyAt = (resource: string) =>
  resolve({
    resource,
    scopes: ["mcp"],
    upstream: { name: "Login", issuer: "https://login.example", clientId: "tea", clientSecret: Redacted.make("secret") }
  })

describe("loopback", () => {
  it.each(hosts)("http://%s · on loopback: %s, of a redirect URI: %s", async (host, loopback, redirect) => {
    const address = `http://${host}:1/mcp`
    const url = new URL(address)
    assert.strictEqual(isSecure(url), loopback, "requests of the client")
    assert.strictEqual(succeeds(() => checkAddress("issuer", address, {})), loopback, "requests of a verifier")
    assert.strictEqual(succeeds(() => proxyAt(address)), loopback, "the resource of a proxy")
    assert.strictEqual(redirectProblem(address, undefined) === undefined, redirect, "a redirect URI of a client")
  })

  it("https and user names decide with it", () => {
    assert.isTrue(isSecure(new URL("https://tea.example/")))
    assert.isFalse(isSecure(new URL("http://kim@127.0.0.1/")))
    assert.isFalse(isSecure(new URL("ftp://127.0.0.1/")))
    assert.isFalse(isSecure(new URL("tea://127.0.0.1/")))
  })
})

describe("texts", () => {
  it("escapes each character that has a meaning in an attribute without quotes, on all pages", () => {
    assert.strictEqual(escapeHtml("<b a=\"'`\">&</b>"), "&#60;b a&#61;&#34;&#39;&#96;&#34;&#62;&#38;&#60;/b&#62;")
    assert.include(render("received", "a=`b`"), "a&#61;&#96;b&#96; completes it now")
  })

  it("RFC 6749, 2.3.1 · encodes as a form, and leaves \"-\", \".\" and \"_\" alone", () => {
    assert.strictEqual(formEncode("a-b.c_d e:f+g%é&=~"), "a-b.c_d+e%3Af%2Bg%25%C3%A9%26%3D%7E")
  })
})
