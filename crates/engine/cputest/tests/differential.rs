//! The engine against the CPU it runs on. Every test starts processes of its own: a machine lies at fixed addresses.

use std::process::{Command, Output};

/// Every form of the host gets its turn at least twice.
const CASES: &str = "4000";

fn output_of(arguments: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_verdict-cputest"))
        .args(arguments)
        .output()
        .expect("the binary was built with this test")
}

fn run(arguments: &[&str]) {
    let output = output_of(arguments);
    assert!(
        output.status.success(),
        "verdict-cputest {}: {}\n{}{}",
        arguments.join(" "),
        output.status,
        String::from_utf8_lossy(&output.stdout),
        String::from_utf8_lossy(&output.stderr)
    );
}

#[test]
fn random_programs_do_what_the_cpu_does() {
    run(&["--seed", "1", "--cases", CASES, "--all-forms"]);
}

#[test]
fn random_programs_do_what_the_cpu_does_while_their_accesses_are_logged() {
    run(&["--seed", "2", "--cases", CASES, "--all-forms", "--accesses"]);
}

#[test]
fn random_programs_do_what_the_cpu_does_where_every_link_charges() {
    run(&["--seed", "3", "--cases", CASES, "--charged", "--short"]);
    run(&["--seed", "4", "--cases", CASES, "--charged", "--accesses"]);
}

#[test]
fn random_programs_do_what_the_cpu_does_while_their_accesses_are_sifted() {
    run(&["--seed", "5", "--cases", CASES, "--charged", "--sifted"]);
    run(&["--seed", "6", "--cases", CASES, "--short", "--sifted"]);
}

/// A loop of two ways: by blocks of which some carry what has run before.
#[test]
fn what_blocks_carry_is_charged_and_logged_wherever_they_are_left() {
    // mov ecx, 13; and then, 13 times: test cl, 1; je to the second half; inc eax; mov [rsp-8], eax; jmp; dec edx;
    // mov [rsp-16], edx; then dec ecx; jne back
    let code = "b90d000000 f6c101 7408 ffc0 894424f8 eb06 ffca 895424f0 ffc9 75e9";
    for mode in [&[][..], &["--accesses"], &["--charged"], &["--sifted"]] {
        run(&[&["--cases", "1", "--code", code], mode].concat());
    }
}

/// The address of the last x87 instruction is the one thing that the engine cannot keep from the guest: proof that a
/// difference does not pass unseen.
#[test]
fn a_difference_is_told() {
    let output = output_of(&["--cases", "1", "--code", "d9e8 d93500000100"]); // fld1; fnstenv [rip + 0x10000]
    let told = String::from_utf8_lossy(&output.stdout);
    assert_eq!(output.status.code(), Some(1), "{told}");
    assert!(told.contains("MISMATCH in state 0"), "{told}");
}

/// Code in many states, at addresses near to and far from the code cache, with and without logging.
fn same(code: &str) {
    run(&["--cases", "40", "--code", code]);
    run(&["--cases", "40", "--code", code, "--accesses"]);
    run(&["--cases", "40", "--code", code, "--sifted"]);
}

#[test]
fn a_call_of_a_null_pointer_goes_to_address_0() {
    same("31c0 ffd0"); // xor eax, eax; call rax
}

#[test]
fn flags_that_an_instruction_leaves_undefined_stay_what_the_cpu_makes_them() {
    same("6816080000 9d f3410fbccf"); // push 0x816; popfq; tzcnt ecx, r15d
}

#[test]
fn a_far_operand_beside_ah() {
    same("022500000100"); // add ah, [rip + 0x10000]
}

#[test]
fn a_fault_in_a_far_indirect_call_leaves_all_registers() {
    same("ff1500000300"); // call [rip + 0x30000]
    same("64ff1500000300"); // call fs:[rip + 0x30000]
}

#[test]
fn far_indirect_jumps_one_after_the_other() {
    // lea rax, [rip+13]; mov [rip+0x10000], rax; jmp [rip+0xfffa]; nop; xlat by way of rbx = the low data page
    same("488d050d000000 48890500000100 ff25faff0000 90 48bb0000011800000000 d7");
}

#[test]
fn a_logged_operand_with_base_index_and_displacement() {
    // mov rax, 0x18010000; mov ecx, 8; mov edx, [rax+rcx*4+0x100]; mov edx, [eax+ecx*4-0x10]
    same("48b80000011800000000 b908000000 8b948800010000 678b5488f0");
}

#[test]
fn a_logged_xlat() {
    same("48bb0000011800000000 d7 67d7"); // mov rbx, 0x18010000; xlat; addr32 xlat
}

#[test]
fn a_logged_bit_test_beyond_its_operand() {
    // mov rdi, 0x18010800; mov rax, -1000; lock bts [rdi], rax; btr [rdi], eax; mov eax, 999; btc [rdi], ax
    same("48bf0008011800000000 48c7c018fcffff f0480fab07 0fb307 b8e7030000 660fbb07");
}

#[test]
fn a_breakpoint_with_a_prefix() {
    same("67cc"); // addr32 int3
}

#[test]
fn a_prefix_that_means_repetition_elsewhere() {
    same("48bf0000011800000000 f2f00107"); // mov rdi, 0x18010000; xacquire lock add [rdi], eax
}

#[test]
fn an_operand_relative_to_eip() {
    same("678b0500000100"); // mov eax, [eip + 0x10000]
    same("67f30f38f80d00000100"); // enqcmds ecx, [eip + 0x10000]
}

#[test]
fn a_prefix_twice_as_where_the_engine_looks_at_what_was_told() {
    same("6565480fae342537000000"); // xsaveopt64 gs:[0x37]
    same("6565488b042538000000"); // mov rax, gs:[0x38]
    same("6565488b0500000100"); // mov rax, gs:[rip + 0x10000]
}
