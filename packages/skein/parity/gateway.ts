/** Each export of `@skein/gateway` with its counterpart in `skein/gateway`. */
export const rows: ReadonlyArray<readonly [effect: string, skein: string | { readonly missing: string }]> = [
  ["@skein/gateway/Proxy.layer", "proxy"],
  ["@skein/gateway/Proxy.fromConfig", "proxies"],
  ["@skein/gateway/Proxy.perPrincipal", "proxy({ connections: { per: \"principal\" } })"],
  ["@skein/gateway/Proxy.perSession", "proxy({ connections: { per: \"session\" } })"]
]
