export * as SignIn from "./SignIn.ts"
export * as TokenStore from "./TokenStore.ts"
