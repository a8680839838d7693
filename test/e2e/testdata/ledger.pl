# Makes, renames and removes directories and files until /tmp/stop is there, and keeps in /tmp/ledger the answer to each: what is there in
# the end, F with its text or D if empty, or G if it was removed; W and L are names that two clients want, won and lost. An answer that says
# that the work is done already (a server was killed after it did it, and the kernel asked again) is doubtful, and counts as done.
# Prints the longest time of one operation in ms, the number of operations, of doubtful answers and of errors; errors are in /tmp/errors.
use strict; use Errno; use IO::Handle;
my ($who) = @ARGV;
my ($longest, $operations, $doubtful, $errors) = (0, 0, 0, 0);
unlink "/tmp/stop";
open my $ledger, ">", "/tmp/ledger" or die; open my $log, ">", "/tmp/errors" or die;
$ledger->autoflush(1); $log->autoflush(1);
chdir "/tree/kills" or die "chdir: $!";

sub uptime { open my $f, "<", "/proc/uptime" or die; return (split / /, <$f>)[0] }
# Tells whether it is done; $already is the error of who asks for something that is done.
sub done { my ($what, $already, $do) = @_;
	my $start = uptime(); my $ok = $do->(); my $error = $!;
	my $took = 1000 * (uptime() - $start); $longest = $took if $took > $longest; $operations++;
	return 1 if $ok;
	if ($already && $error == $already) { $doubtful++; return 1 }
	$errors++; printf $log "%s: %s (after %.1f s, at %s UTC)\n", $what, $error, $took / 1000, join ":", (gmtime)[2, 1, 0]; return 0;
}
my $step; # What of a write failed tells who failed it: without an open there was no state to lose.
sub write_file { my ($path, $text) = @_;
	$step = "open"; open my $f, ">", $path or return 0; print $f $text or return 0;
	$step = "sync"; $f->sync or return 0; $step = "close"; return close $f;
}
for (my $n = 0; !-e "/tmp/stop"; $n++) {
	my ($name, $file) = ("$who-$n", "file");
	done("mkdir $name", Errno::EEXIST, sub { mkdir $name }) or next;
	if ($n % 3 == 1) {
		my $moved = "$who-moved-$n";
		done("rename $name", Errno::ENOENT, sub { rename $name, $moved }) or next;
		$name = $moved;
	}
	if ($n % 5 == 2) {
		done("rmdir $name", Errno::ENOENT, sub { rmdir $name }) and print $ledger "G $name\n";
		next;
	}
	if ($n % 5 == 3) { print $ledger "D $name\n"; next }
	my $text = "$who wrote $n";
	done("write $name/$file", 0, sub { write_file("$name/$file", $text) }) or do { print $log "  it was its $step\n"; next };
	if ($n % 4 == 0) {
		done("rename $name/$file", Errno::ENOENT, sub { rename "$name/$file", "$name/moved" }) or next;
		$file = "moved";
	}
	print $ledger "F $name/$file $text\n";
	if (mkdir "both-$n") { print $ledger "W both-$n\n" }
	elsif ($! == Errno::EEXIST) { print $ledger "L both-$n\n" }
	else { $errors++; print $log "mkdir both-$n: $!\n" }
}
printf "%d %d %d %d\n", $longest, $operations, $doubtful, $errors;
