/** Discovery of the two metadata documents, in the orders of all revisions. */
import * as Grant from "@skein/auth/Grant"
import * as OAuth from "@skein/auth/OAuth"
import * as Outbound from "@skein/auth/Outbound"
import * as TokenStore from "@skein/auth/TokenStore"
import { assert, describe, it } from "@effect/vitest"
import * as Deferred from "effect/Deferred"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import * as Logger from "effect/Logger"
import * as Fiber from "effect/Fiber"
import * as TestClock from "effect/testing/TestClock"
import { coversServer, resourceMetadataUrls } from "../../src/client/protocol/urls.ts"
import { metadataUrls } from "../../src/shared/web.ts"
import { errorOf, person, request, type Servers, start } from "./scriptedServers.ts"

const grant = Grant.authorizationCode({ clientName: "Tea House" })

const paths = (servers: Servers) =>
  servers.requests.map(({ path }) => path).filter((path) => path.includes("well-known"))

/** Runs a request against servers that a test has changed. */
const run = (
  change: (servers: Servers) => void,
  then: (
    result: { servers: Servers; asked: ReadonlyArray<URL>; run: Effect.Effect<number, unknown> }
  ) => Effect.Effect<unknown, unknown>,
  options: Omit<OAuth.Options, "grant"> = {}
) => {
  const { asked, layer } = person()
  return Effect.gen(function*() {
    const servers = yield* start
    change(servers)
    const oauth = yield* OAuth.make({ grant, ...options })
    yield* then({ servers, asked, run: request(oauth, servers.url) })
  }).pipe(Effect.provide([layer, TokenStore.layerMemory]))
}

const wellKnown = "/.well-known/oauth-protected-resource"

describe("addresses", () => {
  const urls = (server: string, named?: string) => resourceMetadataUrls(new URL(server), named).map(({ href }) => href)

  it("2025-11-25 · Protected Resource Metadata Discovery · the challenge, then the path, then the root", () => {
    const origin = "https://tea.example"
    assert.deepEqual(urls(`${origin}/public/mcp`, `${origin}/meta`), [
      `${origin}/meta`,
      `${origin}${wellKnown}/public/mcp`,
      `${origin}${wellKnown}`
    ])
    assert.deepEqual(urls(`${origin}/`), [`${origin}${wellKnown}`])
    assert.deepEqual(urls(`${origin}/mcp/`), [
      `${origin}${wellKnown}/mcp`,
      `${origin}${wellKnown}/mcp/`,
      `${origin}${wellKnown}`
    ])
  })

  it("leaves out a metadata URL of another origin", () => {
    for (const named of ["https://evil.example/meta", "http://tea.example/", "file:///etc/passwd", "no url"]) {
      assert.deepEqual(urls("https://tea.example/", named), [`https://tea.example${wellKnown}`])
    }
  })

  it("2025-11-25 · Authorization Server Metadata Discovery · three addresses with a path, two without", () => {
    const of = (issuer: string) => metadataUrls(new URL(issuer)).map(({ pathname }) => pathname)
    assert.deepEqual(of("https://login.example/t/1"), [
      "/.well-known/oauth-authorization-server/t/1",
      "/.well-known/openid-configuration/t/1",
      "/t/1/.well-known/openid-configuration"
    ])
    assert.deepEqual(of("https://login.example"), [
      "/.well-known/oauth-authorization-server",
      "/.well-known/openid-configuration"
    ])
  })

  it("accepts the resource of the server and of a path above it on the same origin alone", () => {
    const covers = (resource: string) => coversServer(resource, new URL("https://tea.example/a/mcp"))
    for (
      const good of [
        "https://tea.example",
        "https://tea.example/a",
        "https://tea.example/a/",
        "https://tea.example/a/mcp"
      ]
    ) {
      assert.isTrue(covers(good), good)
    }
    for (
      const bad of [
        "https://tea.example/a/m",
        "https://tea.example/b",
        "https://other.example/a",
        "http://tea.example/a",
        "https://tea.example/a#f",
        "tea",
        "https://tea.example/a?x=1"
      ]
    ) {
      assert.isFalse(covers(bad), bad)
    }
  })
})

describe("protected resource metadata", () => {
  it.effect("2025-11-25 · Protected Resource Metadata Discovery · falls back to the path and then to the root", () =>
    run((servers) => {
      servers.challenge = "Bearer"
      servers.routes.set(`${wellKnown}/mcp`, () => ({ status: 404 }))
      servers.routes.set(wellKnown, () => ({ body: servers.resource }))
    }, ({ run, servers }) =>
      Effect.gen(function*() {
        assert.strictEqual(yield* run, 200)
        assert.deepEqual(paths(servers).slice(0, 3), [
          `${wellKnown}/mcp`,
          wellKnown,
          "/.well-known/oauth-authorization-server/as"
        ])
      })))

  it.effect("2025-11-25 · Protected Resource Metadata Discovery · uses the URL of the challenge first", () =>
    run((servers) => {
      servers.challenge = `Bearer resource_metadata="${servers.origin}/meta/mcp"`
      servers.routes.set("/meta/mcp", () => ({ body: servers.resource }))
    }, ({ run, servers }) =>
      Effect.gen(function*() {
        assert.strictEqual(yield* run, 200)
        assert.isFalse(paths(servers).includes(`${wellKnown}/mcp`))
      })))

  it.effect("RFC 9728, 3.3 · refuses metadata of another resource, and asks nobody", () =>
    run(
      (servers) => void (servers.resource["resource"] = "https://other.example/mcp"),
      ({ asked, run }) =>
        Effect.gen(function*() {
          assert.strictEqual(yield* errorOf(run), "ResourceMismatch")
          assert.strictEqual(asked.length, 0)
        })
    ))

  it.effect("2025-03-26 · Server Metadata Discovery Headers · names the protocol version, and sends no credentials and no cookies", () =>
    run(() => {}, ({ run, servers }) =>
      Effect.gen(function*() {
        assert.strictEqual(yield* run, 200)
        for (const { headers, path } of servers.requests) {
          if (!path.includes("well-known")) continue
          assert.strictEqual(headers.authorization, undefined)
          assert.strictEqual(headers.cookie, undefined)
          assert.strictEqual(headers["mcp-protocol-version"], "2025-11-25")
        }
      })))

  for (
    const [name, answer, reason] of [
      ["a status of 5xx", { status: 503 }, "DiscoveryFailed"],
      ["a document without authorization servers", { body: { resource: "" } }, "ResourceMismatch"],
      ["more than maxDocumentBytes", { body: { resource: "x".repeat(300_000) } }, "DiscoveryFailed"]
    ] as const
  ) {
    it.effect(`fails after ${name}, and asks nobody`, () =>
      run(
        (servers) => void servers.routes.set(`${wellKnown}/mcp`, () => answer),
        ({ asked, run }) =>
          Effect.gen(function*() {
            assert.strictEqual(yield* errorOf(run), reason)
            assert.strictEqual(asked.length, 0)
          })
      ))
  }

  for (const status of [301, 302, 303, 307, 308]) {
    it.effect(`follows a redirect of one origin: ${status} to the path with a slash`, () => {
      const modes: Array<string> = []
      const outbound = Outbound.make({
        fetch: (url, init) => {
          modes.push(init.redirect)
          return fetch(url, init as RequestInit)
        }
      })
      return run((servers) => {
        const location = `${wellKnown}/mcp/`
        servers.routes.set(`${wellKnown}/mcp`, () => ({ status, headers: { location } }))
        servers.routes.set(location, () => ({ body: servers.resource }))
        const metadata = "/.well-known/oauth-authorization-server/as"
        servers.routes.set(metadata, () => ({ status, headers: { location: `${servers.origin}/metadata` } }))
        servers.routes.set("/metadata", () => ({ body: servers.metadata }))
      }, ({ run }) =>
        Effect.gen(function*() {
          assert.strictEqual(yield* run, 200)
          // Each hop is a request through the way out, which checks its address.
          assert.deepEqual([...new Set(modes)], ["manual"])
        }), { outbound })
    })
  }

  it.effect("follows three redirects and no more, and says so", () =>
    run((servers) => {
      for (const path of [`${wellKnown}/mcp`, wellKnown]) {
        servers.routes.set(path, () => ({ status: 307, headers: { location: "/hop?1" } }))
      }
      servers.routes.set("/hop", ({ query }) => ({
        status: 307,
        headers: { location: `/hop?${Number([...query.keys()][0]) + 1}` }
      }))
    }, ({ asked, run, servers }) =>
      Effect.gen(function*() {
        assert.include(String(yield* Effect.flip(run)), `"${servers.origin}/hop" is behind more than 3 redirects`)
        assert.strictEqual(servers.count("/hop"), 6)
        assert.strictEqual(asked.length, 0)
      })))

  it.effect("2025-11-25 · SSRF · does not follow a redirect to another origin, and says where it leads", () =>
    Effect.gen(function*() {
      const other = yield* start
      yield* run((servers) => {
        for (const path of [`${wellKnown}/mcp`, wellKnown]) {
          servers.routes.set(path, () => ({ status: 307, headers: { location: `${other.origin}/meta?secret` } }))
        }
      }, ({ asked, run }) =>
        Effect.gen(function*() {
          const error = String(yield* Effect.flip(run))
          assert.include(error, `answered 307 and leads to "${other.origin}/meta", which is of another origin`)
          assert.notInclude(error, "secret")
          assert.deepEqual([other.requests.length, asked.length], [0, 0])
        }))
    }))

  it.effect("does not read metadata that a challenge names on another origin, names the option, and obeys it", () =>
    Effect.gen(function*() {
      const other = yield* start
      const { layer } = person()
      const servers = yield* start
      other.routes.set("/meta", () => ({ body: servers.resource }))
      servers.challenge = `Bearer resource_metadata="${other.origin}/meta"`
      for (const path of [`${wellKnown}/mcp`, wellKnown]) servers.routes.set(path, () => ({ status: 404 }))
      const layers = Layer.merge(layer, TokenStore.layerMemory)
      const refused = yield* Effect.flip(Effect.flatMap(OAuth.make({ grant }), (oauth) => request(oauth, servers.url)))
        .pipe(Effect.provide(layers))
      assert.include(String(refused), `names its metadata at "${other.origin}/meta"`)
      assert.include(String(refused), "resourceMetadata")
      assert.strictEqual(other.requests.length, 0)
      const allowed = { [servers.url.href]: { resourceMetadata: `${other.origin}/meta` } }
      const status = yield* Effect.flatMap(
        OAuth.make({ grant, servers: allowed }),
        (oauth) => request(oauth, servers.url)
      ).pipe(Effect.provide(layers))
      assert.strictEqual(status, 200)
      const wrong = { [servers.url.href]: { resourceMetadata: "http://tea.example/meta" } }
      assert.strictEqual(
        yield* errorOf(Effect.provide(OAuth.make({ grant, servers: wrong }), layers)),
        "InvalidOptions"
      )
    }))

  for (const status of [502, 503, 429]) {
    it.effect(`goes on to the root after a ${status} of the path, as a proxy in front of a server answers`, () =>
      run((servers) => {
        servers.routes.set(`${wellKnown}/mcp`, () => ({ status }))
        servers.routes.set(wellKnown, () => ({ body: servers.resource }))
        servers.routes.set("/.well-known/oauth-authorization-server/as", () => ({ status }))
        servers.routes.set("/as/.well-known/openid-configuration", () => ({ body: servers.metadata }))
      }, ({ run }) => Effect.map(run, (outcome) => assert.strictEqual(outcome, 200))))
  }

  it.effect("keeps its tokens while the path is down and the root names another authorization server", () =>
    run(() => {}, ({ asked, run, servers }) =>
      Effect.gen(function*() {
        assert.strictEqual(yield* run, 200)
        servers.routes.set(`${wellKnown}/mcp`, () => ({ status: 502 }))
        const other = { ...servers.resource, authorization_servers: [`${servers.origin}/other`] }
        servers.routes.set(wellKnown, () => ({ body: other }))
        servers.accepted.clear()
        yield* TestClock.adjust("2 minutes")
        const error = yield* Effect.flip(run)
        assert.include(String(error), "answered 502")
        assert.strictEqual(asked.length, 1)
        servers.routes.delete(`${wellKnown}/mcp`)
        yield* TestClock.adjust("2 minutes")
        assert.strictEqual(yield* run, 200)
        assert.strictEqual(asked.length, 1)
      })))

  it.effect("fails after requestTimeout", () => {
    const { layer } = person()
    return Effect.gen(function*() {
      const servers = yield* start
      const oauth = yield* OAuth.make({ grant, outbound: Outbound.make({ requestTimeout: "1 hour" }) })
      const arrived = yield* Deferred.make<void>()
      servers.routes.set(`${wellKnown}/mcp`, () => {
        Deferred.doneUnsafe(arrived, Effect.void)
        return new Promise(() => {})
      })
      const fiber = yield* Effect.forkChild(Effect.flip(request(oauth, servers.url)))
      yield* Deferred.await(arrived)
      yield* TestClock.adjust("1 hour")
      assert.include(String(yield* Fiber.join(fiber)), "requestTimeout (1h)")
    }).pipe(Effect.provide([layer, TokenStore.layerMemory]))
  })
})

const oidc = (servers: Servers, path: string) => {
  servers.routes.set("/.well-known/oauth-authorization-server/as", () => ({ status: 404 }))
  servers.routes.set(path, () => ({ body: servers.metadata }))
}

describe("authorization server metadata", () => {
  for (const path of ["/.well-known/openid-configuration/as", "/as/.well-known/openid-configuration"]) {
    it.effect(`2025-11-25 · Authorization Server Metadata Discovery · finds ${path}`, () =>
      run((servers) => oidc(servers, path), ({ run }) => Effect.map(run, (status) => assert.strictEqual(status, 200))))
  }

  it.effect("2026-07-28 · Authorization Server Metadata Discovery · refuses metadata of another issuer, compared as text", () =>
    run(
      (servers) => void (servers.metadata["issuer"] = `${servers.origin}/as/`),
      ({ asked, run }) =>
        Effect.gen(function*() {
          const error = yield* Effect.flip(run)
          assert.include(String(error), "they differ by a slash at the end")
          assert.strictEqual(yield* errorOf(run), "IssuerMismatch")
          assert.strictEqual(asked.length, 0)
        })
    ))

  it.effect("accepts an issuer that is an authority with and without a slash", () =>
    run((servers) => {
      servers.resource["authorization_servers"] = [`${servers.origin}/`]
      servers.metadata["issuer"] = servers.origin
      servers.redirect["iss"] = servers.origin
      servers.routes.set("/.well-known/oauth-authorization-server", () => ({ body: servers.metadata }))
    }, ({ run }) => Effect.map(run, (status) => assert.strictEqual(status, 200))))

  for (const name of ["authorization_endpoint", "token_endpoint", "registration_endpoint", "revocation_endpoint"]) {
    for (
      const url of [
        "http://login.example/x",
        "file:///etc/passwd",
        "javascript:alert(1)",
        "https://u:p@login.example/",
        7
      ]
    ) {
      it.effect(`2025-11-25 · Communication Security · refuses the ${name} ${url}`, () =>
        run((servers) => void (servers.metadata[name] = url), ({ asked, run }) =>
          Effect.gen(function*() {
            assert.strictEqual(yield* errorOf(run), "InsecureUrl")
            assert.strictEqual(asked.length, 0)
          })))
    }
  }

  for (
    const issuer of ["http://login.example", "https://login.example/?a", "https://login.example/#", "file:///", "as"]
  ) {
    it.effect(`2025-11-25 · refuses the issuer ${issuer}`, () =>
      run(
        (servers) => void (servers.resource["authorization_servers"] = [issuer]),
        ({ run }) =>
          Effect.gen(function*() {
            assert.strictEqual(yield* errorOf(run), "InsecureUrl")
          })
      ))
  }

  it.effect("2025-11-25 · Communication Security · asks nobody to sign in at a server without https", () => {
    const { asked, layer } = person()
    return Effect.gen(function*() {
      const oauth = yield* OAuth.make({ grant: Grant.authorizationCode({ clientName: "Tea House" }) })
      const error = yield* Effect.flip(oauth.signIn("http://tea.invalid/mcp"))
      assert.deepStrictEqual([error.reason._tag, asked.length], ["InsecureUrl", 0])
      assert.include(error.message, "Nobody is signed in at \"http://tea.invalid/mcp\"")
    }).pipe(Effect.provide([layer, TokenStore.layerMemory]))
  })

  it.effect("fails if the authorization server has no metadata", () =>
    run(
      (servers) => void servers.routes.set("/.well-known/oauth-authorization-server/as", () => ({ status: 404 })),
      ({ run }) =>
        Effect.gen(function*() {
          assert.strictEqual(yield* errorOf(run), "DiscoveryFailed")
        })
    ))

  it.effect("2025-11-25 · Authorization Server Metadata Discovery · skips pages, and names one if nothing else is found", () =>
    run(
      (servers) => {
        const page = () => ({ headers: { "content-type": "text/html" }, body: "<!doctype html>" })
        for (const kind of ["oauth-authorization-server", "openid-configuration"]) {
          servers.routes.set(`/.well-known/${kind}/as`, page)
        }
        servers.routes.set("/as/.well-known/openid-configuration", page)
      },
      ({ run, servers }) =>
        Effect.gen(function*() {
          const error = String(yield* Effect.flip(run))
          assert.include(error, "has no metadata at its well-known URLs")
          const first = `${servers.origin}/.well-known/oauth-authorization-server/as`
          assert.include(error, `"${first}" answered 200 with a page that is not metadata`)
          servers.routes.set("/as/.well-known/openid-configuration", () => ({ body: servers.metadata }))
          yield* TestClock.adjust("5 seconds")
          assert.strictEqual(yield* run, 200)
        })
    ))

  it.effect("2025-11-25 · PKCE · refuses metadata without S256, and asks nobody", () =>
    run(
      (servers) => void delete servers.metadata["code_challenge_methods_supported"],
      ({ asked, run }) =>
        Effect.gen(function*() {
          assert.strictEqual(yield* errorOf(run), "PkceUnsupported")
          assert.strictEqual(asked.length, 0)
        })
    ))

  it.effect("assumes PKCE and leaves the resource out for single servers, each with a line in the log", () => {
    const { layer } = person()
    return Effect.gen(function*() {
      const lines: Array<string> = []
      const logger = Logger.make<unknown, void>(({ message }) => void lines.push(JSON.stringify(message)))
      const servers = yield* start
      delete servers.metadata["code_challenge_methods_supported"]
      const options = { resource: "omit", assumePkce: true }
      const oauth = yield* OAuth.make({ grant, servers: { [`${servers.url.href}#top`]: options } })
      yield* Effect.provide(oauth.signIn(servers.url), Logger.layer([logger]))
      assert.isFalse("resource" in servers.forms("/as/token")[0]!)
      for (const text of ["the resource parameter is left out", "PKCE is assumed"]) {
        const found = lines.filter((line) => line.includes(text))
        assert.lengthOf(found, 1)
        assert.include(found[0], servers.url.href)
      }
      // Another server of the same issuer has neither.
      const other = yield* OAuth.make({ grant, servers: { [`${servers.origin}/other`]: options } })
      assert.strictEqual(yield* errorOf(other.signIn(servers.url)), "PkceUnsupported")
      assert.strictEqual(yield* errorOf(OAuth.make({ grant, servers: { "/mcp": options } })), "InvalidOptions")
    }).pipe(Effect.provide([layer, TokenStore.layerMemory]))
  })

  it.effect("assumes PKCE of the issuers in assumePkce", () => {
    const { asked, layer } = person()
    return Effect.gen(function*() {
      const servers = yield* start
      delete servers.metadata["code_challenge_methods_supported"]
      const oauth = yield* OAuth.make({ grant, assumePkce: [servers.issuer] })
      assert.strictEqual(yield* request(oauth, servers.url), 200)
      assert.strictEqual(asked[0]!.searchParams.get("code_challenge_method"), "S256")
    }).pipe(Effect.provide([layer, TokenStore.layerMemory]))
  })
})

describe("2025-03-26", () => {
  const withoutResource = (servers: Servers) => {
    servers.challenge = "Bearer"
    for (const path of [wellKnown, `${wellKnown}/mcp`]) servers.routes.set(path, () => ({ status: 404 }))
  }

  it.effect("2025-03-26 · Authorization Base URL · reads the metadata of the server without its path", () =>
    run((servers) => {
      withoutResource(servers)
      servers.metadata["issuer"] = servers.origin
      servers.redirect["iss"] = servers.origin
      servers.routes.set("/.well-known/oauth-authorization-server", () => ({ body: servers.metadata }))
    }, ({ run, servers }) =>
      Effect.gen(function*() {
        assert.strictEqual(yield* run, 200)
        // 2025-06-18: "MUST send this parameter regardless of whether authorization servers support it".
        assert.strictEqual(servers.forms("/as/token")[0]!["resource"], servers.url.href)
      })))

  it.effect("2025-03-26 · Fallbacks · uses the default endpoints without metadata", () =>
    run((servers) => {
      withoutResource(servers)
      servers.redirect["iss"] = undefined
      for (const name of ["authorize", "token", "register"]) {
        servers.routes.set(`/${name}`, (request) => servers.ordinary[`/as/${name}`]!(request))
      }
    }, ({ asked, run, servers }) =>
      Effect.gen(function*() {
        assert.strictEqual(yield* run, 200)
        assert.strictEqual(asked[0]!.searchParams.get("resource"), servers.url.href)
        assert.strictEqual(servers.forms("/token")[0]!["resource"], servers.url.href)
        assert.strictEqual(asked[0]!.pathname, "/authorize")
        assert.strictEqual(servers.count("/register"), 1)
        assert.strictEqual(servers.count("/token"), 1)
      })))

  it.effect("says that a server without any metadata may require no sign-in", () =>
    run(withoutResource, ({ asked, run }) =>
      Effect.gen(function*() {
        const error = yield* Effect.flip(run)
        assert.include(String(error), "404")
        assert.include(String(error), "may require no sign-in")
        assert.notInclude(String(error), "a page")
        assert.strictEqual(asked.length, 0)
      })))

  it.effect("names a page that a server has in the place of its metadata", () =>
    run((servers) => {
      withoutResource(servers)
      servers.routes.set(`${wellKnown}/mcp`, () => ({ body: "<!doctype html>" }))
    }, ({ run, servers }) =>
      Effect.gen(function*() {
        const error = String(yield* Effect.flip(run))
        assert.include(error, `"${servers.origin}${wellKnown}/mcp" answered 200 with a page that is not metadata`)
      })))
})
