/** Each export of `@skein/gateway` with its counterpart in `skein/gateway`. */
export const rows: ReadonlyArray<readonly [effect: string, skein: string | { readonly missing: string }]> = [
  ["@skein/gateway/Proxy.layer", "proxy"],
  ["@skein/gateway/Gateway.Gateway", "Gateway"],
  ["@skein/gateway/Gateway.current", "gateway(…).servers"],
  ["@skein/gateway/Gateway.fromConfig", "gateway"],
  ["@skein/gateway/Gateway.layer", "gateway(NodeConfig.object(…))"],
  ["@skein/gateway/Proxy.states", { missing: "gateway(…).servers has those of a gateway" }],
  ["@skein/gateway/Proxy.perPrincipal", "proxy({ connections: { per: \"principal\" } })"],
  ["@skein/gateway/Proxy.perCall", "proxy({ connections: { per: \"call\" } })"],
  ["@skein/gateway/Proxy.perSession", "proxy({ connections: { per: \"session\" } })"]
]
