# Writes records one after the other into a file, and now and then a small file beside it, each brought to the storage, until /tmp/stop is
# there. What is acknowledged is kept in a ledger: number and checksum of each record, name and text of each file. What fails is counted
# and tried again, so that all of the ledger must be there in the end.
#   perl load.pl DIRECTORY RUN LEDGER
# Prints: longest write ms, longest making of a file ms, records, files, errors, first error.
use strict; use IO::Handle; use Fcntl qw(SEEK_SET);
my ($directory, $run, $ledger_path) = @ARGV;
my ($longest_write, $longest_make, $records, $files, $errors, $first) = (0, 0, 0, 0, 0, "");
open my $ledger, ">", $ledger_path or die "$ledger_path: $!";
$ledger->autoflush(1);

sub uptime { open my $f, "<", "/proc/uptime" or die; return (split / /, <$f>)[0] }
sub note { my ($what) = @_; $errors++; $first = "$what: $!" if $first eq ""; select undef, undef, undef, 0.25; return 0 }
sub record { my ($n) = @_; return sprintf("%-16s", "$run $n") x 1024 }

my $file;
sub opened {
	return 1 if $file;
	open $file, "+>>", "$directory/$run" or do { undef $file; return note("open") };
	close $file;
	open $file, "+<", "$directory/$run" or do { undef $file; return note("open") };
	return 1;
}
sub write_record { my ($n) = @_;
	opened() or return 0;
	my $record = record($n);
	if (sysseek($file, $n * length $record, SEEK_SET) && (syswrite($file, $record) // 0) == length $record && $file->sync) { return 1 }
	note("write");
	close $file; undef $file;
	return 0;
}
sub make_file { my ($n) = @_;
	open my $f, ">", "$directory/$run-$n" or return note("create");
	(syswrite($f, "$run made $n") // 0) > 0 && $f->sync && close $f or return note("create");
	return 1;
}
# Until it is done, or all is to end. The time counts from the first try.
sub insist { my ($longest, $do) = @_;
	my $start = uptime(); my $done = 0;
	do { $done = $do->() } until $done || -e "/tmp/stop";
	my $took = 1000 * (uptime() - $start);
	$$longest = $took if $took > $$longest;
	return $done;
}
for (my $n = 0; !-e "/tmp/stop"; $n++) {
	# seek to 0 is "0 but true".
	insist(\$longest_write, sub { write_record($n) }) or next;
	printf $ledger "R %d %u\n", $n, unpack("%32N*", record($n)); $records++;
	if ($n % 5 == 0) {
		insist(\$longest_make, sub { make_file($n) }) or next;
		print $ledger "F $n $run made $n\n"; $files++;
	}
	select undef, undef, undef, 0.1;
}
printf "%d %d %d %d %d %s\n", $longest_write, $longest_make, $records, $files, $errors, $first;
