/** The modules for browsers and workers: none of them imports a module of Node, or `oidc-provider`. */
import { expect, it } from "@effect/vitest"
import { bundle } from "../../../client/test/browser/bundle.ts"

const client = ["OAuth", "Grant", "Outbound", "WebSignIn", "BrowserTokenStore", "Providers"]
const stores = ["TokenStore", "EncryptedTokenStore", "KeyValueTokenStore", "SqlTokenStore"]
const server = ["Protect", "Scopes", "TokenVerifier", "RequestVerifier", "ReplayStore", "SqlReplayStore"]

it.each([["client", [...client, ...stores]], ["server", server]] as const)(
  "the modules of the %s need no module of Node",
  async (side, modules) => {
    const names = modules.map((name) => `import * as ${name} from "@skein/auth/${name}"`)
    const { inputs, ofNode } = await bundle("", `${names.join("\n")}\nconsole.log(${modules.join(", ")})`)
    expect(ofNode).toEqual([])
    expect(inputs.filter((input) => /oidc-provider|auth\/src\/(.*\/)?(node|proxy|testing)\//.test(input))).toEqual([])
    expect(inputs.some((input) => input.endsWith(`auth/src/${side}/${modules[0]}.ts`))).toBe(true)
  }
)
