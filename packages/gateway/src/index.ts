export * as Proxy from "./Proxy.ts"
